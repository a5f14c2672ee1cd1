package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/internal/explain"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/ledger"
)

// act stores an act of an incident that a name means, and says so.
func (a *app) act(cmd *cobra.Command, s *storeFlag, name string, make func(*incident.Kept) (*incident.Act, string, error)) error {
	st, err := s.open()
	if err != nil {
		return err
	}
	k, err := st.Find(cmd.Context(), name)
	if err != nil {
		return err
	}
	act, says, err := make(k)
	if err != nil {
		return err
	}
	if act != nil {
		act.Incident = k.ID
		if _, err := st.Act(*act); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(a.out, printable(says))
	if err != nil {
		return fmt.Errorf("%w: %w", errWrite, err)
	}
	return nil
}

func incidentNoteCommand(a *app) *cobra.Command {
	var s storeFlag
	cmd := &cobra.Command{
		Use:   "note ID TEXT...",
		Short: "Write something down with an incident",
		Long: `note keeps a text with an incident: what somebody saw, asked or decided. Secrets in it are
masked. - reads it from standard input. At most 64 KiB.

Status: 0 kept; 1 there is no such incident, or it could not be kept; 2 wrong usage.`,
		Example: `  inquest incident note last "the node was drained by the operators at 14:10"
  inquest incident note i-3f0c - < findings.txt`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return fmt.Errorf("%w: inquest incident note takes the id of an incident and a text, or - for standard input", errUsage)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			text := strings.Join(args[1:], " ")
			if text == "-" {
				b, err := io.ReadAll(io.LimitReader(a.in, ledger.MaxNote+1))
				if err != nil {
					return fmt.Errorf("read note: %w", err)
				}
				text = string(b)
			}
			text, err := ledger.NoteText(text)
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			return a.act(cmd, &s, args[0], func(k *incident.Kept) (*incident.Act, string, error) {
				return &incident.Act{Kind: incident.ActNote, Text: text}, "noted with " + k.ID, nil
			})
		},
	}
	s.flag(cmd)
	return cmd
}

func incidentCloseCommand(a *app) *cobra.Command {
	var s storeFlag
	reason := ""
	cmd := &cobra.Command{
		Use:   "close ID",
		Short: "Say that nobody works on an incident any more",
		Long: `close takes an incident off the list. Its status stays what the trials show: closing confirms
nothing. inquest incident reopen undoes it.

Status: 0 closed; 1 there is no such incident, or it could not be kept; 2 wrong usage.`,
		Example: `  inquest incident close i-3f0c --reason "the run is not needed any more"`,
		Args:    oneIncident("close"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(reason) > ledger.MaxNote {
				return fmt.Errorf("%w: the reason is longer than %d bytes", errUsage, ledger.MaxNote)
			}
			return a.act(cmd, &s, args[0], func(k *incident.Kept) (*incident.Act, string, error) {
				if k.Closed {
					return nil, k.ID + " is closed already", nil
				}
				says := k.ID + " is closed"
				if k.Status != incident.Confirmed {
					says += "; it is " + k.Status + ": no verification has confirmed a solution"
				}
				return &incident.Act{Kind: incident.ActClose, Text: strings.TrimSpace(strings.ToValidUTF8(reason, "?"))}, says, nil
			})
		},
	}
	s.flag(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why; kept with it")
	return cmd
}

func incidentReopenCommand(a *app) *cobra.Command {
	var s storeFlag
	cmd := &cobra.Command{
		Use:   "reopen ID",
		Short: "Take back that an incident was closed",
		Long: `reopen puts a closed incident back on the list.

Status: 0 reopened; 1 there is no such incident, or it could not be kept; 2 wrong usage.`,
		Args: oneIncident("reopen"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.act(cmd, &s, args[0], func(k *incident.Kept) (*incident.Act, string, error) {
				if !k.Closed {
					return nil, k.ID + " is not closed", nil
				}
				return &incident.Act{Kind: incident.ActReopen}, k.ID + " is " + k.Status + " again", nil
			})
		},
	}
	s.flag(cmd)
	return cmd
}

var (
	errUnproved = errors.New("nothing is confirmed without a verification")
	errNoChange = errors.New("no such change")
)

func incidentConfirmCommand(a *app) *cobra.Command {
	var s storeFlag
	cause := ""
	cmd := &cobra.Command{
		Use:   "confirm ID --cause ENTRY",
		Short: "Name the cause that a verification supports",
		Long: `confirm names the entry of the encyclopedia whose cause a verification bears out, where the
change that was verified is not one that the diagnosis itself called for. It confirms nothing by
itself: an incident without a verification that succeeded after one change is refused.

Status: 0 kept; 1 there is no such incident, no verification supports it, or it could not be kept;
2 wrong usage.`,
		Example: `  inquest incident confirm i-3f0c --cause retained-graph`,
		Args:    oneIncident("confirm"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cause == "" {
				return fmt.Errorf("%w: inquest incident confirm needs --cause ENTRY; inquest explain TEXT finds entries", errUsage)
			}
			c, err := a.catalogue()
			if err != nil {
				return err
			}
			if e, err := c.Entry(cause); err != nil || e == nil {
				var ids []string
				for _, e := range c.Entries() {
					ids = append(ids, e.ID)
				}
				if n := explain.Nearest(cause, ids); n != "" {
					return fmt.Errorf("%w: no entry %q; did you mean %s?", errUsage, cause, n)
				}
				return fmt.Errorf("%w: no entry %q; inquest explain TEXT finds entries", errUsage, cause)
			}
			return a.act(cmd, &s, args[0], func(k *incident.Kept) (*incident.Act, string, error) {
				if k.Status != incident.Confirmed {
					return nil, "", fmt.Errorf("%w: %s is %s; inquest verify --incident %s -- COMMAND", errUnproved, k.ID, k.Status, k.ID)
				}
				return &incident.Act{Kind: incident.ActConfirmed, Text: cause}, k.ID + ": its cause is " + cause, nil
			})
		},
	}
	s.flag(cmd)
	cmd.Flags().StringVar(&cause, "cause", "", "the entry, as inquest explain names it")
	return cmd
}

func incidentRevertCommand(a *app) *cobra.Command {
	var s storeFlag
	cmd := &cobra.Command{
		Use:   "revert ID TRIAL",
		Short: "Say that a change that did not help was taken back",
		Long: `revert takes the change that a trial had off the list of those to be taken back. It changes no
file and runs nothing: undo the change first. TRIAL is one of those that inquest incident show
names under "What did not help".

Status: 0 kept; 1 there is no such incident or change, or it could not be kept; 2 wrong usage.`,
		Example: `  inquest incident revert i-3f0c t20260203-101500-5f3a9c0b1d`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("%w: inquest incident revert takes the id of an incident and that of a trial", errUsage)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.act(cmd, &s, args[0], func(k *incident.Kept) (*incident.Act, string, error) {
				for _, n := range k.NotHelped {
					if n.Trial == args[1] {
						return &incident.Act{Kind: incident.ActReverted, Text: n.Text, Trials: []string{n.Trial}}, k.ID + ": the change of " + n.Trial + " was taken back", nil
					}
				}
				return nil, "", fmt.Errorf("%w: %s lists no change of %q to be taken back", errNoChange, k.ID, args[1])
			})
		},
	}
	s.flag(cmd)
	return cmd
}
