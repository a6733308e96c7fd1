package analysts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/jackc/pgx/v5/pgxpool"

	chouse "quittance/internal/clickhouse"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/secret"
)

// The codes of refusals.
const (
	// CodeName: the name is malformed.
	CodeName = "analyst.name_malformed"
	// CodeNameTaken: ClickHouse has a user of this name that is no analyst.
	CodeNameTaken = "analyst.name_taken"
	// CodeOtherAgency: the analyst exists and belongs to another agency. Args has agency.
	CodeOtherAgency = "analyst.other_agency"
	// CodeUnknown: there is no analyst of this name.
	CodeUnknown = "analyst.unknown"
	// CodeNotAdministrator: the user of the connection may not make users or policies.
	// Args has user.
	CodeNotAdministrator = "analyst.not_administrator"
	// CodeSchema: tables or views are missing, or a view does not read with the rights of its
	// reader. Args has objects.
	CodeSchema = "analyst.schema_outdated"
	// CodeUnprotected: policies that were created are not in force as they were. Args has
	// tables. The analyst reads nothing.
	CodeUnprotected = "analyst.unprotected"
)

// Analyst is a user of ClickHouse that reads the rows of an agency.
type Analyst struct {
	Name     string
	AgencyID string
	Agency   string // its slug; empty for an agency that the registry does not know
	// Unprotected are tables and views that the analyst reads itself and not through its own
	// views, and tables that its views read without a policy: it can see more than the rows
	// of its agency. Add repairs it.
	Unprotected []string
	// Lacking are tables and views of which the analyst has no view, or one of another
	// release. Add repairs it.
	Lacking []string
	// Loose are settings of FixedSettings that the analyst can change. Add repairs it.
	Loose []string

	user bool // it exists
}

// Complete reports whether the analyst has a view of each table and view, with its agency's
// rows only, and cannot go round them.
func (a Analyst) Complete() bool {
	return len(a.Unprotected) == 0 && len(a.Lacking) == 0 && len(a.Loose) == 0
}

// Result says what an operation did.
type Result struct {
	Analyst
	// Changed is false if everything was so before, or was not done: see SQL.
	Changed bool
	// Password of a new user. It is stored nowhere: show it once.
	Password secret.Text
	// SQL has the statements of the operation if this ClickHouse cannot store users, as the
	// embedded engine. Nothing was done then.
	SQL []string
}

// timeout bounds an operation, which locks the registry.
const timeout = 30 * time.Second

// Add makes an analyst of an agency, named by its slug or id. If the analyst exists, it
// repairs its policies and rights and leaves the password. now is the time of the service's
// clock. A refusal is an *operation.Error with the field agency or name.
func Add(ctx context.Context, pool *pgxpool.Pool, conn chouse.Conn, actor operation.Actor, agency, name string, now time.Time) (out Result, err error) {
	if !registry.IsSlug(name) {
		return out, operation.Refuse(CodeName, "name", nil)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = registry.Change(ctx, pool, nil, now, func(t *registry.Tx) error {
		of, err := t.Before.FindAgency(agency)
		if err != nil {
			return err
		}
		s, err := look(ctx, conn)
		if err != nil {
			return err
		}
		out.Analyst = Analyst{Name: name, AgencyID: of.ID, Agency: of.Slug}
		if !s.stores {
			p := newPassword()
			out.Password, out.SQL = p.text, s.add(name, of.ID, p, s.shared())
			return nil
		}
		return out.make(ctx, t, conn, s, actor)
	})
	if err != nil {
		return Result{}, fmt.Errorf("adding an analyst: %w", err)
	}
	return out, nil
}

// make makes or repairs the analyst, and records it.
func (r *Result) make(ctx context.Context, t *registry.Tx, conn chouse.Conn, s *server, actor operation.Actor) error {
	known, isAnalyst := s.analyst(r.Name)
	switch {
	case !isAnalyst && slices.Contains(s.users, r.Name):
		return operation.Refuse(CodeNameTaken, "name", operation.Args{"name": r.Name})
	case isAnalyst && known.AgencyID != r.AgencyID:
		slug := known.AgencyID
		if a, err := t.Before.FindAgency(known.AgencyID); err == nil {
			slug = a.Slug
		}
		return operation.Refuse(CodeOtherAgency, "name", operation.Args{"name": r.Name, "agency": slug})
	case isAnalyst && known.user && known.Complete() && len(s.unshown()) == 0:
		return nil
	}
	if wrong := s.outdated(); len(wrong) > 0 {
		return operation.Refuse(CodeSchema, "", operation.Args{"objects": wrong})
	}
	action := "analyst.repair"
	var p *password
	if !known.user {
		made := newPassword()
		action, p, r.Password = "analyst.add", &made, made.text
	}
	if err := operation.Record(ctx, t, actor, t.Now, operation.Entry{Action: action, Subject: r.Name, AgencyID: r.AgencyID, Detail: map[string]any{"agency": r.Agency}}); err != nil {
		return err
	}
	if err := s.run(ctx, conn, s.protect(r.Name, r.AgencyID, p)); err != nil {
		return err
	}
	after, err := look(ctx, conn)
	if err != nil {
		return err
	}
	// The policies must be in force before the first right.
	if open := append(after.unshown(), after.unprotected(r.Name, r.AgencyID)...); len(open) > 0 {
		return operation.Refuse(CodeUnprotected, "", operation.Args{"tables": open})
	}
	r.Changed = true
	return s.run(ctx, conn, append(s.define(r.Name, s.shared()), s.open(r.Name)...))
}

// Revoke removes an analyst with its database and policies. Its open connections answer no more queries. A
// refusal is an *operation.Error with the field name.
func Revoke(ctx context.Context, pool *pgxpool.Pool, conn chouse.Conn, actor operation.Actor, name string, now time.Time) (out Result, err error) {
	if !registry.IsSlug(name) {
		return out, operation.Refuse(CodeName, "name", nil)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = registry.Change(ctx, pool, nil, now, func(t *registry.Tx) error {
		s, err := look(ctx, conn)
		if err != nil {
			return err
		}
		out.Name = name
		if !s.stores {
			out.SQL = s.revoke(name)
			return nil
		}
		known, ok := s.analyst(name)
		if !ok {
			return operation.Refuse(CodeUnknown, "name", operation.Args{"name": name})
		}
		out.Analyst, out.Changed = known, true
		if a, err := t.Before.FindAgency(known.AgencyID); err == nil {
			out.Agency = a.Slug
		}
		if err := operation.Record(ctx, t, actor, t.Now, operation.Entry{Action: "analyst.revoke", Subject: name, AgencyID: known.AgencyID, Detail: map[string]any{"agency": out.Agency}}); err != nil {
			return err
		}
		return s.run(ctx, conn, s.revoke(name))
	})
	if err != nil {
		return Result{}, fmt.Errorf("revoking an analyst: %w", err)
	}
	return out, nil
}

// List lists the analysts by name. stores is false for a ClickHouse that cannot store users:
// it has no analysts.
func List(ctx context.Context, pool *pgxpool.Pool, conn chouse.Conn) (list []Analyst, stores bool, err error) {
	now, err := registry.Read(ctx, pool)
	if err != nil {
		return nil, false, fmt.Errorf("listing analysts: %w", err)
	}
	s, err := look(ctx, conn)
	if err != nil {
		return nil, false, fmt.Errorf("listing analysts: %w", err)
	}
	list = s.analysts()
	for i, a := range list {
		if known, err := now.FindAgency(a.AgencyID); err == nil {
			list[i].Agency = known.Slug
		}
	}
	return list, s.stores, nil
}

// codeAccessDenied is ClickHouse's ACCESS_DENIED.
const codeAccessDenied = 497

// refused makes a refusal of ClickHouse's error about missing rights.
func (s *server) refused(err error) error {
	var exc *clickhouse.Exception
	if errors.As(err, &exc) && exc.Code == codeAccessDenied {
		return operation.Refuse(CodeNotAdministrator, "", operation.Args{"user": s.user})
	}
	return err
}

// run executes statements in order. An error does not have their text, which holds the hash
// of a password.
func (s *server) run(ctx context.Context, conn chouse.Conn, sql []string) error {
	for i, one := range sql {
		if err := conn.Exec(ctx, one); err != nil {
			return fmt.Errorf("statement %d of %d: %w", i+1, len(sql), s.refused(err))
		}
	}
	return nil
}
