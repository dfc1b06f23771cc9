// Package durable replaces files so that whoever reads one, after whatever
// happens to the process or the machine, finds all of the old bytes or all of
// the new.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// temporary is what comes between a file's name and a random part in the name
// of its successor while that is written.
const temporary = ".tmp-"

// Replace puts data in the place of the file at path, and makes its folder if
// there is none. Whenever the process or the machine stops, the file holds
// either the old bytes or the new: the new ones are on disk under another name
// before they take the old one's. The file is readable for its owner only,
// because what is kept may hold the text of keys.
func Replace(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, filepath.Base(path)+temporary) // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(dir)
}

// syncDir makes a renaming in dir last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Sweep removes what a process that was killed while it replaced the file at
// path has left. Call it when nobody replaces that file.
func Sweep(path string) error {
	dir, prefix := filepath.Dir(path), filepath.Base(path)+temporary
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}
