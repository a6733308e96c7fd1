package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"quittance/cmd/internal/roles"
	"quittance/internal/deliveries"
	"quittance/internal/form"
	"quittance/internal/operation"
	"quittance/internal/postgres"
)

// words are what the command line says for the codes of refused operations.
var words = map[string]func(operation.Args) string{
	deliveries.CodeUnknown: func(a operation.Args) string {
		return fmt.Sprintf("no delivery has this id: either it was not tried yet, or its event is more than %d days old; `quittance deliveries list` shows the others", a["days"])
	},
	deliveries.CodeAccepted: func(a operation.Args) string {
		return "was accepted at " + at(a) + "; `quittance replay` sends it again"
	},
	deliveries.CodeBodyGone: func(operation.Args) string {
		return "what was to be sent is no longer kept; `quittance replay` sends the event again"
	},
	deliveries.CodeStateUnknown: func(a operation.Args) string {
		return "no delivery has this state; the states are: " + listOf(a, "states")
	},
	deliveries.CodeNotRetryable: func(a operation.Args) string {
		return fmt.Sprintf("deliveries that are %s cannot be retried; those that can are: %s", a["state"], listOf(a, "states"))
	},
	deliveries.CodeSuspended: func(a operation.Args) string {
		return fmt.Sprintf("the endpoint is suspended since %s: nothing is sent to it; `quittance endpoints resume %s` sends all that waits", at(a), a["destination"])
	},
	deliveries.CodeNeverSuspended: func(operation.Args) string {
		return "an ERP is never suspended: every payment has to reach it; while it fails, its confirmations wait and are tried again by themselves"
	},
	deliveries.CodeNoRecovery: func(operation.Args) string { return "there is no such recovery" },
	deliveries.CodeBehind: func(operation.Args) string {
		return "the schedule has not applied all outcomes, so it is not known what is delivered; check that `quittance sink schedule` runs, then try again"
	},

	"agency.unknown": func(a operation.Args) string {
		if len(list(a["agencies"])) == 0 {
			return "there are no agencies yet: add one with `quittance seed FILE`"
		}
		if named, ok := a["agency"]; ok {
			return fmt.Sprintf("no agency has the id or slug %q; there are: %s", named, some(a["agencies"]))
		}
		return "no agency has this id or slug; there are: " + some(a["agencies"])
	},
	"agency.without_integrator": func(a operation.Args) string {
		return fmt.Sprintf("%s has no integrator application, so that platform keys cannot target it; mark one of its applications with integrator: true and apply the file with `quittance seed FILE`", a["agency"])
	},
	"application.ambiguous": func(a operation.Args) string {
		return "several applications have this name, give the id: " + some(a["applications"])
	},
	"application.unknown": func(a operation.Args) string {
		if len(list(a["applications"])) == 0 {
			return "there are no applications yet: add one with `quittance seed FILE`"
		}
		return "no application has this id or name; there are: " + some(a["applications"])
	},
	"clerk.code_malformed": said("must be lower-case letters, digits and hyphens, a letter first, at most 63"),
	"clerk.counter_malformed": func(a operation.Args) string {
		return fmt.Sprintf("must be 1 to %d printable characters: the desk or place; a new clerk needs one", a["most"])
	},
	"clerk.key_unknown": func(a operation.Args) string {
		return fmt.Sprintf("no clerk's key has the id %s; `quittance clerks list` shows them", a["id"])
	},
	"clerk.name_malformed": func(a operation.Args) string {
		return fmt.Sprintf("must be 1 to %d printable characters; a new clerk needs one", a["most"])
	},
	"clerk.not_a_name": said("that is neither AGENCY/CODE, such as impots/c01, nor the id of a key; `quittance clerks list` shows them"),
	"clerk.too_many_keys": func(a operation.Args) string {
		return fmt.Sprintf("%s has %s in force already, and that is the most; end one with `quittance clerks revoke KEY_ID`", a["clerk"], keysSaid(a))
	},
	"clerk.unknown":             said("no agency has such a clerk; `quittance clerks list` shows them as AGENCY/CODE"),
	"endpoint.overlap_negative": said("must not be negative: 0 ends the old secret at once"),
	"endpoint.too_many_secrets": func(a operation.Args) string {
		return fmt.Sprintf("%d secrets sign already, and %d is the most: the older one ends at %s; rotate again after that, or end both at once with --overlap 0", a["signing"], a["most"], a["ends_at"])
	},
	"endpoint.unknown": said("no webhook endpoint has this id; `quittance endpoints list` shows them"),
	"key.no_room_to_overlap": func(a operation.Args) string {
		return fmt.Sprintf("key %s cannot overlap with a new one: %s has another of its mode in force, %s, and %d is the most; end that one with `quittance keys revoke %s`, or replace this one at once with --overlap 0",
			a["id"], a["owner"], a["other"], a["most"], a["other_id"])
	},
	"key.not_an_id": said("that is no id of a key, which looks like 018f0000-0000-7000-8000-0000000000aa; `quittance keys list` shows them"),
	"key.over": func(a operation.Args) string {
		return fmt.Sprintf("key %s is %s; make a new one with `quittance keys create`", a["id"], a["state"])
	},
	"key.overlap_negative": said("must not be negative: 0 ends the old key at once"),
	"key.reads_out_of_range": func(a operation.Args) string {
		return fmt.Sprintf("must be from 1 to %d", a["most"])
	},
	"key.rotated": func(a operation.Args) string {
		return fmt.Sprintf("key %[1]s was rotated already and ends at %[2]s; rotate the key that replaced it, or end this one with `quittance keys revoke %[1]s`", a["id"], a["ends_at"])
	},
	"key.too_many": func(a operation.Args) string {
		return fmt.Sprintf("%s has %s in force already, and %d is the most; replace one with `quittance keys rotate KEY_ID --overlap 0`, or end one with `quittance keys revoke KEY_ID`",
			a["owner"], keysSaid(a), a["most"])
	},
	"key.unknown": func(a operation.Args) string {
		return fmt.Sprintf("no key has the id %s; `quittance keys list` shows them", a["id"])
	},
	"key.without_agencies": said("a platform key needs the agencies that it may act for"),
}

func at(a operation.Args) string {
	t, _ := a["at"].(time.Time)
	return moment(t)
}

func listOf(a operation.Args, name string) string {
	list, _ := a[name].([]string)
	return strings.Join(list, ", ")
}

// inWords is the words for a refused operation, without what was being done: the
// operator knows. Other errors stay as they are.
func inWords(err error) error {
	var refused *operation.Error
	if !errors.As(err, &refused) || words[refused.Code] == nil {
		return err
	}
	return errors.New(words[refused.Code](refused.Args))
}

// refusal puts the refusal of an operation in words, behind the flag or the
// argument that is at fault. argument is what the command calls the id that it
// takes. Other errors stay as they are.
func refusal(err error, argument string) error {
	var refused *operation.Error
	if !errors.As(err, &refused) {
		return err
	}
	text := inWords(err).Error()
	switch refused.Field {
	case "":
		return errors.New(text)
	case "id":
		return errors.New(argument + ": " + text)
	}
	return errors.New("--" + refused.Field + ": " + text)
}

// fileFaults lists what is wrong with a file, one fault a line. Other errors stay
// as they are.
func fileFaults(err error) error {
	var faulty *form.FaultsError
	if !errors.As(err, &faulty) {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "registry file refused, nothing changed; faults: %d", len(faulty.Faults))
	for _, f := range faulty.Faults {
		b.WriteString("\n  " + f.Message)
	}
	return errors.New(b.String())
}

// said is a refusal that needs no values.
func said(text string) func(operation.Args) string {
	return func(operation.Args) string { return text }
}

// isRefused says whether an error is a refused operation.
func isRefused(err error, code string) bool {
	var refused *operation.Error
	return errors.As(err, &refused) && (code == "" || refused.Code == code)
}

// operator is the user who gives a command on this machine.
func operator() operation.Actor {
	a := operation.Actor{Kind: operation.ActorCommandLine, Name: cmp.Or(os.Getenv("USER"), "unknown")}
	if u, err := user.Current(); err == nil {
		a.Name = cmp.Or(u.Username, a.Name)
	}
	a.Origin, _ = os.Hostname()
	return a
}

// deliveriesOn is the deliveries in a database, for operations on rows.
func deliveriesOn(pool *postgres.Pool) *deliveries.Store {
	return deliveries.NewStore(pool, roles.DeliveryKinds(nil))
}

func list(value any) []string {
	names, _ := value.([]string)
	return names
}

// some is the first of many names, for a sentence.
func some(value any) string {
	const most = 10
	names := list(value)
	if len(names) > most {
		return strings.Join(names[:most], "; ") + fmt.Sprintf("; and %d more", len(names)-most)
	}
	return strings.Join(names, "; ")
}

// keysSaid is "2 test keys (A, B)".
func keysSaid(a operation.Args) string {
	live, _ := a["live"].(bool)
	return fmt.Sprintf("%d %s keys (%s)", len(list(a["keys"])), modeOf(live), strings.Join(list(a["keys"]), ", "))
}
