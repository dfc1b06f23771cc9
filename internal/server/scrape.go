package server

import (
	"fmt"
	"log/slog"
)

// scrapeLog takes what promhttp has to say of series that cannot be exported.
type scrapeLog struct{ log *slog.Logger }

// Println implements promhttp.Logger.
func (l scrapeLog) Println(v ...any) { l.log.Error("Metrics are incomplete", "err", fmt.Sprint(v...)) }
