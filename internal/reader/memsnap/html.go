package memsnap

import "io"

func isHTML(head []byte) bool                   { return false }
func fromHTML(r io.Reader) (*result, error)     { return nil, errNone }
func isTimeline(head []byte) bool               { return false }
func fromTimeline(r io.Reader) (*result, error) { return nil, errNone }
