package roles

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"quittance/internal/kafka"
	"quittance/internal/kafka/security"
	"quittance/test/servers"
)

// A client with its rights passes the check at start. Without any of them it is refused,
// by an error that names the principal, the operation and the resource.
func TestMissingRightIsNamed(t *testing.T) {
	t.Parallel()
	k := servers.StartSecureKafka(t)
	const prefix = "cg."
	open := kafka.Config{Brokers: []string{k.Open}, Prefix: prefix, Replication: 1, Partitions: 1}
	cl, err := open.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := kafka.Migrate(t.Context(), open, cl); err != nil {
		t.Fatal(err)
	}
	common := map[kafka.Right]bool{}
	for _, r := range CommonRights() {
		common[r] = true
	}
	for n, client := range KafkaClients() {
		user := "quittance-" + client.Name
		password, _ := k.User(t, user)
		s := &Settings{Kafka: k.Scram, TopicPrefix: prefix, Instance: "0"}
		s.secure.kafkaUser, s.secure.kafkaPassword, s.secure.kafkaFiles.CA = user, password, k.File
		if n%2 == 1 {
			s.secure.kafkaSASL = strings.ToLower(security.ScramSHA256)
		}
		if err := s.Secure(); err != nil {
			t.Fatal(err)
		}
		var acls []servers.ACL
		for _, r := range client.Rights {
			acls = append(acls, aclOf(r, prefix, "User:"+user))
		}
		refused := func(a servers.ACL) func(error) bool {
			return func(err error) bool {
				return errors.Is(err, kafka.ErrRights) && strings.Contains(err.Error(), "User:"+user+" may not ") &&
					strings.Contains(err.Error(), a.Operation+" "+a.ResourceType+" ") && strings.Contains(err.Error(), a.Resource)
			}
		}
		for _, a := range acls {
			if err := s.CheckRights(t.Context(), client.Name); !refused(a)(err) {
				t.Fatalf("%s without rights, asked for %s of %s: %v", client.Name, a.Operation, a.Resource, err)
			}
			if n > 0 {
				break // all rights of one client are enough
			}
		}
		k.Allow(t, acls...)
		allowed := func(err error) bool { return err == nil }
		await(t, s, client.Name, "with its rights", allowed)
		for i, r := range client.Rights {
			if common[r] && (n > 0 || i%10 > 0) { // those of all are alike
				continue
			}
			if r.Operation == kmsg.ACLOperationDescribe && slices.ContainsFunc(client.Rights, func(o kafka.Right) bool {
				return o.Resource == r.Resource && (o.Operation == kmsg.ACLOperationRead || o.Operation == kmsg.ACLOperationWrite)
			}) {
				continue // they include it
			}
			k.Forbid(t, acls[i])
			await(t, s, client.Name, "without "+acls[i].Operation+" of "+acls[i].Resource, refused(acls[i]))
			k.Allow(t, acls[i])
		}
		await(t, s, client.Name, "with its rights again", allowed)
	}
}

func aclOf(r kafka.Right, prefix, principal string) servers.ACL {
	a := servers.ACL{Principal: principal, Operation: kafka.OperationName(r.Operation), ResourceType: kafka.ResourceName(r.Type), Resource: r.FullName(prefix), Pattern: "literal"}
	if r.Prefixed {
		a.Pattern = "prefixed"
	}
	return a
}

// await checks the rights until the broker has applied a change of them.
func await(t *testing.T, s *Settings, client, what string, as func(error) bool) {
	t.Helper()
	for begun := time.Now(); ; {
		err := s.CheckRights(t.Context(), client)
		if as(err) {
			return
		}
		if time.Since(begun) > 30*time.Second {
			t.Fatalf("%s %s: %v", client, what, err)
		}
	}
}
