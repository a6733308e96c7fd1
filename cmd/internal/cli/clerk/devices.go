package clerk

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/identity"
	"quittance/internal/registry"
)

func listDevices() cli.Command {
	return cli.Command{
		Use: "devices", Short: "List the devices on which clerks sign in with a PIN", JSON: "the list", Examples: []string{"clerks devices --json"},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			devices, err := identity.ListDevices(ctx, m.Pool, m.Now)
			if err != nil {
				return err
			}
			return m.Show(render.Mapped(devices, deviceJSON), func(p *render.Page) {
				var rows [][]any
				for _, d := range devices {
					state := "active"
					if d.Wrong >= identity.MaxWrongPINs {
						state = "PIN used up"
					}
					rows = append(rows, []any{d.Clerk, registry.Mode(d.Live), d.ID, render.Moment(d.CreatedAt), render.Moment(d.LastUsedAt), fmt.Sprintf("%d of %d", d.Wrong, identity.MaxWrongPINs), state})
				}
				p.Table("no clerk signs in with a PIN; clerks choose one on the page of the counter", "CLERK,MODE,DEVICE,REMEMBERED,LAST USED,WRONG PINS,STATE", rows)
			})
		},
	}
}

// deviceJSON is a device as --json prints it.
func deviceJSON(d identity.Device) render.Object {
	return render.Object{
		"id", d.ID, "clerk", d.Clerk, "mode", registry.Mode(d.Live), "wrong_pins", d.Wrong, "created_at", d.CreatedAt, "last_used_at", d.LastUsedAt,
	}
}

func forgetDevices() cli.Command {
	var yes bool
	return cli.Command{
		Use: "forget AGENCY/CODE|DEVICE_ID", Short: "Make all devices of a clerk, or one device, forget the clerk's PIN, and end all sessions of the clerk at once; it asks before more than one", JSON: "the devices",
		Examples: []string{"clerks forget impots/c03 --yes", "clerks forget 018f0000-0000-7000-8000-0000000000aa"},
		Missing:  "say whose devices, or which device: `quittance clerks forget AGENCY/CODE` or `quittance clerks forget DEVICE_ID`; `quittance clerks devices` shows both",
		Flags:    func(f *pflag.FlagSet, _ *cli.Meta) { cli.YesFlag(f, &yes) },
		Operate: func(ctx context.Context, m *cli.Meta) error {
			all, err := identity.ListDevices(ctx, m.Pool, m.Now)
			if err != nil {
				return err
			}
			var plan []string
			for _, d := range all {
				if d.Clerk == m.Args[0] {
					plan = append(plan, fmt.Sprintf("  %s, %s mode, last used %s", d.ID, registry.Mode(d.Live), render.Moment(d.LastUsedAt)))
				}
			}
			if len(plan) > 1 {
				if err := m.Agree(yes, fmt.Sprintf("This makes %d devices forget %s, who needs the key again on each:\n%s\nThe id of a device forgets one.", len(plan), m.Args[0], strings.Join(plan, "\n"))); err != nil {
					return err
				}
			}
			devices, err := identity.ForgetDevices(ctx, m.Pool, m.By, m.Args[0], m.Now)
			if err != nil {
				return err
			}
			return m.Show(render.Mapped(devices, deviceJSON), func(p *render.Page) {
				if len(devices) == 0 {
					p.Say("Nothing to forget: no device knows %s. All sessions of the clerk have ended.", m.Args[0])
				}
				for _, d := range devices {
					p.Say("Device %s has forgotten %s, %s mode: its PIN opens nothing, and all sessions of the clerk have ended.", d.ID, d.Clerk, registry.Mode(d.Live))
				}
			})
		},
	}
}
