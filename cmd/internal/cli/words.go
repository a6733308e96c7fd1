package cli

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"

	"quittance/internal/form"
	"quittance/internal/operation"
)

// actor is who types commands: the user of this machine.
func actor() operation.Actor {
	a := operation.Actor{Kind: operation.ActorCommandLine, Name: "uid " + strconv.Itoa(os.Getuid())}
	if u, err := user.Current(); err == nil && u.Username != "" {
		a.Name = u.Username
	}
	a.Origin, _ = os.Hostname()
	return a
}

// refusal puts the refusal of an operation in words, behind the flag or the
// argument that is at fault. argument is what the command calls the id that it
// takes. Other errors stay as they are.
func refusal(err error, argument string) error {
	var refused *operation.Error
	if !errors.As(err, &refused) {
		return err
	}
	text := refused.Error()
	if say, ok := words[refused.Code]; ok {
		text = say(refused.Args)
	}
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

// words are what operators read when an operation is refused, by its code. A text
// says what to do, in terms of commands.
var words = map[string]func(operation.Args) string{
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
