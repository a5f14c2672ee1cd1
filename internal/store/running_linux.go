package store

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"time"
)

// running reports whether process pid is the one that began at a time in RFC 3339: there is
// such a process, and it started then.
func running(pid int, begun string) answer {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat("/proc/self/stat"); err == nil {
			return no
		}
		return unknown
	}
	at, terr := time.Parse(time.RFC3339Nano, begun)
	if err != nil || terr != nil {
		return unknown
	}
	// The name in parentheses may hold anything; the start is the 20th field behind it, in
	// hundredths of a second since the machine started (proc_pid_stat(5); USER_HZ is 100 on
	// every architecture that Linux has for servers).
	_, rest, _ := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(" "))
	fields := bytes.Fields(rest)
	if len(fields) < 20 {
		return unknown
	}
	ticks, err := strconv.ParseInt(string(fields[19]), 10, 64)
	if err != nil {
		return unknown
	}
	if string(fields[0]) == "Z" || string(fields[0]) == "X" {
		return no
	}
	boot := booted()
	if boot == 0 {
		return unknown
	}
	started := time.Unix(boot, 0).Add(time.Duration(ticks) * 10 * time.Millisecond)
	if d := started.Sub(at); d < -slack*time.Second || d > slack*time.Second {
		return no // the number is another's
	}
	return yes
}

// booted is when the machine started, in seconds; 0 where that is not known.
func booted() int64 {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	_, rest, ok := bytes.Cut(b, []byte("\nbtime "))
	if !ok {
		return 0
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.ParseInt(string(line), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
