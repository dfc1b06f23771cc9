package incident

// DecodeState lets a fuzz test at what reads state files.
var DecodeState = decodeState
