package registry

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/form"
	"quittance/internal/operation"
	"quittance/internal/registry/db"
	"quittance/internal/secret"
)

// MaxERPCode is the longest revenue_line_code in characters (contract, "Limits").
const MaxERPCode = 50

// fieldDefaultService is the name in the registry file.
const fieldDefaultService = "default_service"

// Mapping is the service of the dues with a revenue_line_code.
type Mapping struct {
	ERPCode string
	// Service may be inactive. Then the agency's default service counts.
	Service Service
	// ByCommand means that a command has set it: a registry file leaves it.
	ByCommand bool
}

// MappingsEntry is the catalogue mapping of an agency as operators see it (contract,
// "Service catalogue mapping").
type MappingsEntry struct {
	AgencyID, Agency string // Agency is the slug
	Mappings         []Mapping
	// Default is the service of dues without a mapping; zero for none.
	Default Service
	// DefaultByCommand means that a command has set or removed it.
	DefaultByCommand bool
	// Removed are the ERP codes whose mapping a command has removed: a registry file does
	// not set them.
	Removed []string
}

// mappingsOf returns the catalogue mapping of an agency.
func (s *Snapshot) mappingsOf(a Agency) MappingsEntry {
	e := MappingsEntry{AgencyID: a.ID, Agency: a.Slug, Default: s.byCode[codeKey{a.ID, a.DefaultService}], DefaultByCommand: s.SetByCommand(a.ID, fieldDefaultService)}
	for key, service := range s.mappings {
		if key.agencyID == a.ID {
			e.Mappings = append(e.Mappings, Mapping{ERPCode: key.code, Service: s.byCode[codeKey{a.ID, service}], ByCommand: s.MappingByCommand(a.ID, key.code)})
		}
	}
	slices.SortFunc(e.Mappings, func(a, b Mapping) int { return strings.Compare(a.ERPCode, b.ERPCode) })
	for _, code := range s.mapped[a.ID] {
		if _, ok := s.mappings[codeKey{a.ID, code}]; !ok {
			e.Removed = append(e.Removed, code)
		}
	}
	return e
}

// MappingOf returns the code of the service to which an ERP code is mapped; empty for none.
func (s *Snapshot) MappingOf(agencyID, erpCode string) string {
	return s.mappings[codeKey{agencyID, erpCode}]
}

// MappingByCommand reports whether a command has set or removed the mapping of an ERP code.
func (s *Snapshot) MappingByCommand(agencyID, erpCode string) bool {
	return slices.Contains(s.mapped[agencyID], erpCode)
}

// ListMappings lists the catalogue mapping of an agency, named by its slug or id, or of all
// agencies when named is empty. A refusal is an *operation.Error.
func ListMappings(ctx context.Context, pool *pgxpool.Pool, named string) (list []MappingsEntry, err error) {
	s, err := Read(ctx, pool)
	if err != nil {
		return nil, fmt.Errorf("listing mappings: %w", err)
	}
	agencies := slices.Collect(maps.Values(s.Agencies))
	if named != "" {
		a, err := s.FindAgency(named)
		if err != nil {
			return nil, err
		}
		agencies = []Agency{a}
	}
	for _, a := range agencies {
		list = append(list, s.mappingsOf(a))
	}
	slices.SortFunc(list, func(a, b MappingsEntry) int { return strings.Compare(a.Agency, b.Agency) })
	return list, nil
}

// MappingChange changes the catalogue mapping of an agency. Services are named by their
// codes.
type MappingChange struct {
	// Set are services by ERP code.
	Set map[string]string
	// Remove are ERP codes whose mapping ends.
	Remove []string
	// Default is the new default service; empty for none. Nil leaves it.
	Default *string
}

// ChangeMappings changes the catalogue mapping of an agency, named by its slug or id. It
// counts for the next list of dues at every instance within a second, and a registry file
// leaves it. changed is false if all of it was so before. now is the time of the service's
// clock. A refusal is an *operation.Error; nothing has changed then.
func ChangeMappings(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, named string, c MappingChange, now time.Time) (after MappingsEntry, changed bool, err error) {
	err = Change(ctx, pool, keys, now, func(t *Tx) error {
		agency, err := t.Before.FindAgency(named)
		if err != nil {
			return err
		}
		if err := t.Before.refuseMappings(agency.ID, c); err != nil {
			return err
		}
		if changed, err = t.changeMappings(ctx, agency, c); err != nil {
			return fmt.Errorf("storing the mapping: %w", err)
		}
		now, err := load(ctx, t.Tx, loading{})
		if err != nil {
			return err
		}
		after = now.mappingsOf(now.Agencies[agency.ID])
		detail := map[string]any{"agency": agency.Slug}
		if len(c.Set) > 0 {
			detail["set"] = c.Set
		}
		if len(c.Remove) > 0 {
			detail["removed"] = c.Remove
		}
		if c.Default != nil {
			detail[fieldDefaultService] = *c.Default
		}
		return operation.Record(ctx, t, actor, t.Now, operation.Entry{Action: "mapping.change", Subject: agency.ID, AgencyID: agency.ID, Detail: detail})
	})
	if err != nil {
		return MappingsEntry{}, false, fmt.Errorf("changing the mapping: %w", err)
	}
	return after, changed, nil
}

// refuseMappings returns why a change is not possible.
func (s *Snapshot) refuseMappings(agencyID string, c MappingChange) error {
	known := func(field, code string) error {
		if _, ok := s.byCode[codeKey{agencyID, code}]; ok {
			return nil
		}
		var codes []string
		for key := range s.byCode {
			if key.agencyID == agencyID {
				codes = append(codes, key.code)
			}
		}
		slices.Sort(codes)
		return operation.Refuse("service.unknown", field, operation.Args{"services": codes})
	}
	for code, service := range c.Set {
		if !form.IsLine(code, MaxERPCode) {
			return operation.Refuse("mapping.code_malformed", "erp-code", operation.Args{"most": MaxERPCode})
		}
		if err := known("service", service); err != nil {
			return err
		}
	}
	for _, code := range c.Remove {
		if s.mappings[codeKey{agencyID, code}] == "" && !s.MappingByCommand(agencyID, code) {
			var codes []string
			for key := range s.mappings {
				if key.agencyID == agencyID {
					codes = append(codes, key.code)
				}
			}
			slices.Sort(codes)
			return operation.Refuse("mapping.unknown", "erp-code", operation.Args{"codes": codes})
		}
	}
	if c.Default == nil || *c.Default == "" {
		return nil
	}
	return known("default-service", *c.Default)
}

func (t *Tx) changeMappings(ctx context.Context, agency Agency, c MappingChange) (changed bool, err error) {
	codes, fields := slices.Sorted(maps.Keys(c.Set)), []string{}
	for _, code := range codes {
		changed = changed || t.Before.MappingOf(agency.ID, code) != c.Set[code]
		if err := t.Anew(ctx, "service_mappings", agency.ID, code); err != nil {
			return false, err
		}
		if err := t.q.UpsertServiceMapping(ctx, db.UpsertServiceMappingParams{AgencyID: agency.ID, ErpCode: code, ServiceCode: c.Set[code]}); err != nil {
			return false, err
		}
	}
	for _, code := range c.Remove {
		changed = changed || t.Before.MappingOf(agency.ID, code) != ""
		if err := t.q.RemoveServiceMapping(ctx, db.RemoveServiceMappingParams{AgencyID: agency.ID, ErpCode: code}); err != nil {
			return false, err
		}
	}
	if c.Default != nil {
		changed, fields = changed || *c.Default != agency.DefaultService, append(fields, fieldDefaultService)
		var service *string
		if *c.Default != "" {
			service = c.Default
		}
		if err := t.q.SetDefaultService(ctx, db.SetDefaultServiceParams{ID: agency.ID, DefaultService: service}); err != nil {
			return false, err
		}
	}
	return changed, t.q.NoteMappings(ctx, db.NoteMappingsParams{ID: agency.ID, Fields: fields, ErpCodes: append([]string{}, slices.Concat(codes, c.Remove)...)})
}
