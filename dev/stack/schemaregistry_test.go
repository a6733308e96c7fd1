package stack_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"

	"quittance/dev/stack"
)

const (
	userV1 = `{"type":"record","name":"User","namespace":"t","fields":[{"name":"name","type":"string"}]}`
	// One more field, with a default: its readers also read v1.
	userV2 = `{"type":"record","name":"User","namespace":"t","fields":[{"name":"name","type":"string"},{"name":"age","type":["null","int"],"default":null}]}`
	// One more field, without a default: its readers cannot read v2.
	userV3 = `{"type":"record","name":"User","namespace":"t","fields":[{"name":"name","type":"string"},{"name":"mail","type":"string"}]}`
)

func avro(s string) sr.Schema { return sr.Schema{Schema: s, Type: sr.TypeAvro} }

// answered returns the protocol's error that the registry answered with.
func answered(err error) *sr.Error {
	var response *sr.ResponseError
	if errors.As(err, &response) {
		return response.SchemaError()
	}
	return nil
}

func TestSchemaRegistry(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cfg := stack.SchemaRegistryConfig{Dir: t.TempDir(), Log: logger(t)}
	r, err := stack.StartSchemaRegistry(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, r.Stop)
	client, err := sr.NewClient(sr.URLs(r.URL()))
	if err != nil {
		t.Fatal(err)
	}

	if _, err := client.LookupSchema(ctx, "users/value", avro(userV1)); answered(err) != sr.ErrSubjectNotFound {
		t.Errorf("look-up of an unknown schema: %v", err)
	}
	v1, err := client.CreateSchema(ctx, "users/value", avro(userV1))
	if err != nil {
		t.Fatal(err)
	}
	// The same schema with other spaces gets no new version and no new id.
	spaced, err := client.CreateSchema(ctx, "users/value", avro("  "+userV1[:1]+"\n "+userV1[1:]))
	if err != nil || spaced.ID != v1.ID || spaced.Version != 1 {
		t.Errorf("registered again: %+v, %v; want id %d, version 1", spaced, err, v1.ID)
	}
	// The schema has the same id in another subject.
	other, err := client.CreateSchema(ctx, "copies", avro(userV1))
	if err != nil || other.ID != v1.ID {
		t.Errorf("in another subject: %+v, %v; want id %d", other, err, v1.ID)
	}
	v2, err := client.CreateSchema(ctx, "users/value", avro(userV2))
	if err != nil || v2.Version != 2 || v2.ID == v1.ID {
		t.Errorf("second version: %+v, %v", v2, err)
	}

	_, err = client.CreateSchema(ctx, "users/value", avro(userV3))
	var refused *sr.ResponseError
	if !errors.As(err, &refused) || refused.StatusCode != 409 {
		t.Errorf("a version that reads nothing written before: %v, want 409", err)
	}
	if c, err := client.CheckCompatibility(ctx, "users/value", -1, avro(userV3)); err != nil || c.Is || len(c.Messages) == 0 {
		t.Errorf("compatibility of it: %+v, %v", c, err)
	}
	if c, err := client.CheckCompatibility(ctx, "users/value", 1, avro(userV2)); err != nil || !c.Is {
		t.Errorf("compatibility of v2 with v1: %+v, %v", c, err)
	}
	if _, err := client.CreateSchema(ctx, "junk", avro(`{"type":"recrod"}`)); answered(err) != sr.ErrInvalidSchema {
		t.Errorf("not a schema: %v", err)
	}
	for _, c := range client.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatNone}, "users/value") {
		if c.Err != nil {
			t.Error(c.Err)
		}
	}
	v3, err := client.CreateSchema(ctx, "users/value", avro(userV3))
	if err != nil || v3.Version != 3 {
		t.Errorf("without compatibility: %+v, %v", v3, err)
	}

	// After a restart all ids and versions are the same.
	if err := r.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	again, err := stack.StartSchemaRegistry(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, again.Stop)
	if client, err = sr.NewClient(sr.URLs(again.URL())); err != nil {
		t.Fatal(err)
	}
	if found, err := client.LookupSchema(ctx, "users/value", avro(userV2)); err != nil || found.ID != v2.ID || found.Version != 2 {
		t.Errorf("look-up after a restart: %+v, %v; want %+v", found, err, v2)
	}
	if text, err := client.SchemaByID(ctx, v1.ID); err != nil || text.Schema != userV1 {
		t.Errorf("by id after a restart: %q, %v", text.Schema, err)
	}
	if subjects, err := client.Subjects(ctx); err != nil || !slices.Equal(subjects, []string{"copies", "users/value"}) {
		t.Errorf("subjects after a restart: %q, %v", subjects, err)
	}
	if latest, err := client.SchemaByVersion(ctx, "users/value", -1); err != nil || latest.ID != v3.ID {
		t.Errorf("latest after a restart: %+v, %v", latest, err)
	}
	if c := client.Compatibility(ctx, "users/value"); c[0].Err != nil || c[0].Level != sr.CompatNone {
		t.Errorf("level after a restart: %+v", c)
	}
}
