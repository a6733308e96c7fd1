package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/user"
	"regexp"
	"strings"
	"time"

	"quittance/internal/analysts"
	"quittance/internal/deliveries"
	"quittance/internal/form"
	"quittance/internal/operation"
	"quittance/internal/receipts"
	"quittance/internal/registry"
)

// words has the texts for the codes of refused operations.
var words = map[string]func(operation.Args) string{
	deliveries.CodeUnknown:        filled("no delivery has this id: either it was not attempted yet, or its event is more than {days} days old; `quittance deliveries list` shows the others"),
	deliveries.CodeAccepted:       filled("was accepted at {at}; `quittance replay TOPIC --to SINK --endpoint ENDPOINT --redelivery NAME --since TIME` sends it again, unless it is a confirmation to an ERP"),
	deliveries.CodeSuperseded:     filled("the partner has accepted a later webhook of the same payment, so this older one is never sent again"),
	deliveries.CodeBodyGone:       filled("the body of the delivery is no longer kept; `quittance replay TOPIC --to SINK --since TIME` makes it again"),
	deliveries.CodeStateUnknown:   filled("no delivery has this state; the states are: {states}"),
	deliveries.CodeNotRetryable:   filled("deliveries that are {state} cannot be retried; those that can are: {states}"),
	deliveries.CodeSuspended:      filled("the endpoint is suspended since {at}: nothing is sent to it; `quittance endpoints resume {destination}` sends all that waits"),
	deliveries.CodeNeverSuspended: filled("an ERP is never suspended: every payment must reach it; while it fails, its confirmations wait and are sent again automatically"),
	deliveries.CodeNoRecovery:     filled("there is no such recovery"),
	deliveries.CodeBehind:         filled("the schedule has not applied all outcomes, so the state of deliveries is not known; check that `quittance sink schedule` runs, then try again"),

	"agency.unknown": func(a operation.Args) string {
		agencies, _ := a["agencies"].([]string)
		named, ok := a["agency"]
		switch {
		case len(agencies) == 0:
			return "there are no agencies yet: add one with `quittance seed FILE`"
		case ok:
			return fmt.Sprintf("no agency has the id or slug %q; there are: %s", named, some(agencies))
		}
		return "no agency has this id or slug; there are: " + some(agencies)
	},
	"registry.not_among":        filled("must be some of: {known}; each once"),
	"registry.out_of_range":     filled("must be from {least} to {most}"),
	"agency.without_integrator": filled("{agency} has no integrator application, so that platform keys cannot target it; mark one of its applications with integrator: true and apply the file with `quittance seed FILE`"),
	"application.ambiguous":     filled("several applications have this name, give the id: {applications}"),
	"application.unknown": func(a operation.Args) string {
		if applications, _ := a["applications"].([]string); len(applications) > 0 {
			return "no application has this id or name; there are: " + some(applications)
		}
		return "there are no applications yet: add one with `quittance seed FILE`"
	},
	"cashin.in_force":               filled("the application has credentials in force already, {id}; replace them with `quittance cashin rotate`, or end them with `quittance cashin revoke`"),
	"cashin.none":                   filled("the application has no credentials in force; make some with `quittance cashin create`"),
	"application.name_malformed":    filled("must be 1 to {most} printable characters"),
	"application.name_taken":        filled("application {id} of the agency has this name; `quittance apps set` changes it"),
	"application.portal":            filled("this is the application of the citizen portal of {agency}: it has no keys, no credentials and no embed origins; name an integrator's application, `quittance apps list` shows them"),
	"application.portal_has_none":   filled("the application of a citizen portal has no such limit: nobody has a key for it"),
	"application.second_integrator": filled("the agency has an integrator application already: {application}"),
	"citizen.subject_malformed":     filled("must be 1 to {most} bytes of UTF-8, without control characters, and without spaces at its ends"),
	"account.unknown": func(a operation.Args) string {
		if codes, _ := a["accounts"].([]string); len(codes) > 0 {
			return fmt.Sprintf("%v has no account of this code in the mode %v; it has: %s", a["agency"], a["mode"], some(codes))
		}
		return fmt.Sprintf("%v has no accounts in the mode %v: add them to `accounts` of its registry file, and apply it with `quittance seed FILE`", a["agency"], a["mode"])
	},
	"citizen.phone_invalid":     filled("must be a mobile number of Congo, such as +242 06 600 00 01"),
	"citizen.email_invalid":     filled("must be an e-mail address, such as name@example.org"),
	"clerk.code_malformed":      filled("must be at most 63 lower-case letters, digits and hyphens, beginning with a letter"),
	"clerk.counter_malformed":   filled("must be 1 to {most} printable characters: the desk or place; a new clerk needs one"),
	"clerk.key_unknown":         filled("no clerk's key has the id {id}; `quittance clerks list` shows them"),
	"clerk.limit_out_of_range":  filled("must be an amount in XAF from 0 to {most}; 0 is no limit"),
	"clerk.name_malformed":      filled("must be 1 to {most} printable characters; a new clerk needs one"),
	"clerk.not_a_name":          filled("that is neither AGENCY/CODE, such as impots/c01, nor the id of a key; `quittance clerks list` shows them"),
	"clerk.device_unknown":      filled("no device has the id {id}, or it has forgotten its clerk already; `quittance clerks devices` lists them"),
	"clerk.not_a_device":        filled("that is neither AGENCY/CODE, such as impots/c01, nor the id of a device; `quittance clerks devices` lists them"),
	"clerk.pin_guessable":       filled("anybody would try this PIN first; avoid sequences and repeated digits"),
	"clerk.pin_malformed":       filled("must have {least} to {most} digits"),
	"clerk.too_many_keys":       filled("{clerk} has {keys} in force already, the maximum; end one with `quittance clerks revoke KEY_ID`"),
	"clerk.unknown":             filled("no agency has such a clerk; `quittance clerks list` shows them as AGENCY/CODE"),
	"endpoint.overlap_negative": filled("must not be negative: 0 ends the old secret at once"),
	"endpoint.too_many_secrets": filled("{signing} secrets sign already, and {most} is the most: the older one ends at {ends_at}; rotate again after that, or end both at once with --overlap 0"),
	"endpoint.exists":           filled("endpoint {id} of this owner has this address; `quittance endpoints set {id}` changes it"),
	"endpoint.removed":          filled("this endpoint was removed at {at}; `quittance endpoints add` with its owner and address restores it"),
	"endpoint.url_refused":      filled("{why}"),
	"endpoint.unknown":          filled("no webhook endpoint has this id; `quittance endpoints list` shows them"),
	receipts.CodeAnnounced:      filled("the key {kid} is public already and signs {mode} receipts from {from} on; rotate again after that, or revoke it first if it was stolen"),
	receipts.CodeUnknownKey:     filled("no key of receipts has this kid; `quittance receipts keys list` shows them"),
	"origin.malformed":          filled("must be https origins in lower case without a path, such as https://guichet.example"),
	"origin.unknown": func(a operation.Args) string {
		if origins, _ := a["origins"].([]string); len(origins) > 0 {
			return "is not among the owner's origins, which are: " + some(origins)
		}
		return "the owner has no origins"
	},
	"mapping.code_malformed": filled("must be 1 to {most} printable characters: the revenue_line_code of the ERP's dues"),
	"mapping.unknown": func(a operation.Args) string {
		if codes, _ := a["codes"].([]string); len(codes) > 0 {
			return "the agency has no mapping of this code; it has those of: " + some(codes)
		}
		return "the agency has no mappings"
	},
	"statement.not_quarantined":  filled("the import is {state}, not in quarantine"),
	"statement.reason_malformed": filled("must be 1 to {most} printable characters: why"),
	"statement.original_deleted": filled("the file of this import was deleted: the account keeps files for `keep_years` only"),
	"statement.request_approved": filled("{name} has approved the request already"),
	"statement.request_over":     filled("the request is over: a request waits for a day, and the file can be read for a day after the approval; make a new one with `quittance statements original request`"),
	"statement.request_unknown":  filled("no request of this id is yours to decide or to read; `quittance statements original list` shows the requests"),
	"statement.request_waits":    filled("another person must approve it first: `quittance statements original approve {request}`"),
	"statement.second_person":    filled("whoever requested the file cannot approve it: another person does, with another QUITTANCE_STAFF_KEY"),
	"statement.unknown":          filled("no import has this id; `quittance statements list` shows them"),
	"service.unknown": func(a operation.Args) string {
		if codes, _ := a["services"].([]string); len(codes) > 0 {
			return "the agency's catalogue has no service of this code; it has: " + some(codes)
		}
		return "the agency's catalogue is empty: add services with `quittance seed FILE`"
	},
	"key.grants_over":             filled("key {id} is {state}: it acts for nobody"),
	"key.last_agency":             filled("key {id} would have no agency left; end it with `quittance keys revoke {id}`"),
	"key.not_platform":            filled("key {id} belongs to {owner}, and acts for its agency only; agencies are granted to platform keys"),
	"key.no_room_to_overlap":      filled("key {id} cannot overlap with a new one: {owner} has another of its mode in force, {other}, and {most} is the most; end that one with `quittance keys revoke {other_id}`, or replace this one at once with --overlap 0"),
	"key.not_an_id":               filled("that is no id of a key, which looks like 018f0000-0000-7000-8000-0000000000aa; `quittance keys list` shows them"),
	"key.over":                    filled("key {id} is {state}; make a new one with `quittance keys create`"),
	"key.overlap_negative":        filled("must not be negative: 0 ends the old key at once"),
	"key.reads_out_of_range":      filled("must be from 1 to {most}"),
	"key.rotated":                 filled("key {id} was rotated already and ends at {ends_at}; rotate the key that replaced it, or end this one with `quittance keys revoke {id}`"),
	"key.too_many":                filled("{owner} has {keys} in force already, and {most} is the most; replace one with `quittance keys rotate KEY_ID --overlap 0`, or end one with `quittance keys revoke KEY_ID`"),
	"key.unknown":                 filled("no key has the id {id}; `quittance keys list` shows them"),
	"personal.phone_malformed":    filled("must be a phone number, such as \"+242 06 600 00 01\""),
	analysts.CodeName:             filled("must be at most 63 lower-case letters, digits and hyphens, beginning with a letter"),
	analysts.CodeNameTaken:        filled("ClickHouse has a user {name} that is no analyst of ours; choose another name"),
	analysts.CodeOtherAgency:      filled("the analyst {name} reads the rows of {agency}; choose another name, or end that one with `quittance analysts revoke {name}`"),
	analysts.CodeUnknown:          filled("there is no analyst {name}; `quittance analysts list` shows them"),
	analysts.CodeNotAdministrator: filled("ClickHouse's user {user} may not make users and row policies; name an administrator in the address of --clickhouse (docs/analysts.md, \"Connecting\")"),
	analysts.CodeSchema:           filled("ClickHouse's tables or views are not those of this build: {objects}; run `quittance migrate`"),
	analysts.CodeUnprotected:      filled("ClickHouse does not apply the row policies as they were made, on {tables}; the analyst can read nothing. Check whether somebody changes policies at the same time, or whether several servers share no users, and try again"),
	"period.changed":              filled("what people had approved has changed; propose the close again"),
	"period.closed":               filled("the account is closed until {to} already; choose a later day"),
	"period.day_malformed":        filled("must be a day, such as 2026-11-22"),
	"period.import_pending":       filled("an import of a statement is under way or was interrupted; run `quittance statements import` with its file again"),
	"period.not_matched":          filled("the matcher has not run since the end of the period: check that `quittance sink match` and `quittance sink journal` run, and try again after a minute"),
	"period.not_over":             filled("the period must end before today, which is {today} on the account"),
	"period.quarantined":          filled("the statement of import {import} is in quarantine; compare it with the accepted one (`quittance statements show {import}`); if that one is right, `quittance statements dismiss {import} --reason TEXT`; if this file is, `quittance statements release {import} --reason TEXT` and import it again"),
	"period.rebuild_needed":       filled("an earlier release wrote rows of the period without their dues; run `quittance rebuild journal`, then propose the close again"),
	"period.statement_missing":    filled("no statement shows {day}; import it with `quittance statements import`. If the operator had none that day, a later statement must be imported and what is expected of that day be explained"),
	"case.close_waits":            filled("a close of the account until {to}, proposed by {proposer}, waits in case {case}; approve it with `quittance cases approve {case}`, or end it with `quittance cases reject {case} --reason TEXT`"),
	"case.not_yours":              filled("the key in QUITTANCE_STAFF_KEY is of another agency; the agency's own staff or operations close its accounts"),
	"chain.nothing":               filled("nothing is known by this name; give a payment reference, an operator's reference, an order, a due, or a line as `quittance cases show` names it"),
	"case.closed":                 filled("the case was closed at {at}: {resolution}; a sum has one exit only"),
	"case.no_break_to_match":      filled("{case} is no open break of the same account that you may see; name the cases of the other breaks, separated by commas: `quittance cases list --kind break --state open` shows them"),
	"case.no_proposal":            filled("the case has no proposal that waits; `quittance cases propose` makes one"),
	"case.not_paid":               filled("the session is not completed, or its money was given back already; there is nothing to refund"),
	"case.nothing_to_match":       filled("the break has rows on one side only; name the cases of the other breaks, separated by commas: `quittance cases list --kind break --state open` shows them"),
	"case.own_cash":               filled("the key in QUITTANCE_STAFF_KEY is of a person who took or gave back this cash as a clerk, or, for an account of the counters, who is a clerk of the agency; two other people resolve the case"),
	"case.proposal_over":          filled("proposal {number} is {state} and cannot be approved; make a new one with `quittance cases propose`"),
	"case.proposal_unknown":       filled("the case has {most} proposals, numbered from 1; `quittance cases show` lists them"),
	"case.proposal_waits":         filled("proposal {number} ({resolution}, by {proposer}) is {state}; end an open one with `quittance cases reject` before you make another"),
	"case.reason_malformed":       filled("must be 1 to {most} printable characters: why"),
	"case.reference_malformed":    filled("must be at most {most} printable characters"),
	"case.reference_missing":      filled("{resolution} needs what proves it: reference and date of the refund, the operator's letter, or the ERP's reference"),
	"case.resolution_not_allowed": filled("a case of kind {kind} is resolved by one of: {allowed}"),
	"case.second_person":          filled("whoever proposed the resolution cannot approve it: another person does, with another QUITTANCE_STAFF_KEY"),
	"case.sums_differ":            filled("the breaks differ by {difference} {currency} (minor units) together; what you match by hand must add up to zero: `explain` the rest in a case of its own"),
	"case.session_unknown":        filled("no session that you may see has this id; ids look like chs_… and are in webhooks and in the ministry API"),
	"case.unknown":                filled("no case that you may see has this id; `quittance cases list` shows them, a new one after about a second"),
	"case.which_proposal":         filled("the case has had {number} proposals: say which with its number; `quittance cases show` lists them"),
	"staff.contact_revoked":       filled("{name} is revoked and gets no digests"),
	"staff.email_malformed":       filled("must be an e-mail address, such as name@example.org"),
	"staff.language_unknown":      filled("must be one of: {languages}"),
	"staff.no_contact":            filled("{name} has no address yet, so that there is nothing to change; give one"),
	"staff.key_missing":           filled("set QUITTANCE_STAFF_KEY to the st_ key of the person who acts; `quittance staff add` makes one"),
	"staff.key_unknown":           filled("QUITTANCE_STAFF_KEY holds no key of staff; set it to the whole st_ key as `quittance staff add` showed it"),
	"staff.name_malformed":        filled("must be 1 to {most} printable characters: the person's name"),
	"staff.name_taken":            filled("{name} exists already and is {state}; names of staff are never used twice, so give a name that tells the two apart"),
	"staff.needs_proposer":        filled("{group} has two members or more, so that one of them proposes a new one: set QUITTANCE_STAFF_KEY to the key of a member; another one then runs `quittance staff approve`"),
	"staff.not_approved":          filled("the key in QUITTANCE_STAFF_KEY, of {name}, is not approved yet; another member runs `quittance staff approve {id}`"),
	"staff.not_proposed":          filled("{name} waits for no approval: the state is {state}; `quittance staff list` shows all"),
	"staff.other_group":           filled("members of {group} decide about this, and the key in QUITTANCE_STAFF_KEY is of {own}; ask a member of {group}"),
	"staff.proposer_revoked":      filled("whoever proposed {name} is revoked; end the proposal with `quittance staff revoke` and propose another name with `quittance staff add`"),
	"staff.revoked":               filled("the key in QUITTANCE_STAFF_KEY, of {name}, is revoked; use another person's key"),
	"staff.second_person":         filled("whoever proposes a member cannot approve it: another member of {group} runs `quittance staff approve`"),
	"staff.unknown":               filled("no member of staff has this id or name; `quittance staff list` shows them"),
	"key.without_agencies":        filled("a platform key needs the agencies that it may act for"),
}

// inWords returns the text for a refused operation. It leaves out what was being done,
// because the operator knows it. Other errors stay as they are.
func inWords(err error) error {
	var refused *operation.Error
	if !errors.As(err, &refused) || words[refused.Code] == nil {
		return err
	}
	return errors.New(words[refused.Code](refused.Args))
}

// refusal returns the text for a refused operation, after the name of the flag or
// argument at fault. argument is the command's name for the id that it takes. Other
// errors stay as they are.
func refusal(err error, argument string) error {
	var refused *operation.Error
	if !errors.As(err, &refused) {
		return err
	}
	text := inWords(err).Error()
	switch refused.Field {
	case "":
		return errors.New(text)
	case "id", strings.ToLower(argument):
		return errors.New(argument + ": " + text)
	}
	return errors.New("--" + refused.Field + ": " + text)
}

// fileFaults lists the faults of a file, one on each line. Other errors stay as they are.
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

var placeholder = regexp.MustCompile(`\{\w+\}`)

// filled returns a function that replaces {name} in a text by the value of that name, and
// {keys} by the number, mode and list of the keys.
func filled(text string) func(operation.Args) string {
	return func(args operation.Args) string {
		return placeholder.ReplaceAllStringFunc(text, func(name string) string {
			switch value := args[strings.Trim(name, "{}")].(type) {
			case time.Time:
				return moment(value)
			case []string:
				if name == "{keys}" {
					return fmt.Sprintf("%d %s keys (%s)", len(value), registry.Mode(args["live"] == true), strings.Join(value, ", "))
				}
				return some(value)
			default:
				return fmt.Sprint(value)
			}
		})
	}
}

// isRefused reports whether an error is a refused operation with this code, or with any
// code if it is empty.
func isRefused(err error, code string) bool {
	var refused *operation.Error
	return errors.As(err, &refused) && (code == "" || refused.Code == code)
}

// operator returns the user who runs the command, as the actor of its operations.
func operator() operation.Actor {
	a := operation.Actor{Kind: operation.ActorCommandLine, Name: cmp.Or(os.Getenv("USER"), "unknown")}
	if u, err := user.Current(); err == nil {
		a.Name = cmp.Or(u.Username, a.Name)
	}
	a.Origin, _ = os.Hostname()
	return a
}

// some joins names for a sentence, at most ten of them.
func some(names []string) string {
	const most = 10
	if len(names) > most {
		return strings.Join(names[:most], "; ") + fmt.Sprintf("; and %d more", len(names)-most)
	}
	return strings.Join(names, "; ")
}
