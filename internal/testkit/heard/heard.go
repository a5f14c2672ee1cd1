// Package heard lets tests of signals run where signals are ignored, as below nohup and in the
// background of a script.
package heard

import (
	"os"
	"os/signal"
)

// All makes this process, and those that it starts, hear the signals that it was started to
// ignore: one that is caught here has its usual meaning in a new program. The others are left as
// they are.
func All(signals ...os.Signal) {
	for _, s := range signals {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}
