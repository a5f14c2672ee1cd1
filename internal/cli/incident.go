package cli

import (
	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/internal/store"
)

const incidentLong = `incident works with what is kept of failed runs. Each run, boundary trial and verification
is recorded as a trial in a store; trials that failed in the same way in the same scenario are
one incident, whatever machine and rank they were of. An incident is confirmed only by a
verification (inquest verify) that succeeded after one change: until then its cause is what a
diagnosis says, and a retry that worked proves nothing.`

// incidentCommands is the table of the commands of inquest incident. Adding one is a row here
// and a file beside this one.
var incidentCommands = []func(*app) *cobra.Command{
	incidentListCommand,
	incidentShowCommand,
	incidentNoteCommand,
	incidentCloseCommand,
	incidentReopenCommand,
	incidentConfirmCommand,
	incidentRevertCommand,
	incidentRecheckCommand,
	incidentCompareCommand,
	incidentExportCommand,
}

func incidentCommand(a *app) *cobra.Command {
	cmd := needsCommand(&cobra.Command{Use: "incident", Short: "The incidents that are kept: what failed, what was tried, what was proved", Long: incidentLong})
	for _, c := range incidentCommands {
		cmd.AddCommand(c(a))
	}
	return cmd
}

// storeFlag is the flag that names a store, and the store that it names.
type storeFlag struct{ dir string }

func (f *storeFlag) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dir, "store", "", "folder where trials and incidents are kept (default $XDG_STATE_HOME/inquest, or ~/.local/state/inquest)")
}

func (f *storeFlag) open() (*store.Store, error) {
	dir, err := storeDir(f.dir)
	if err != nil {
		return nil, err
	}
	return store.Open(dir), nil
}
