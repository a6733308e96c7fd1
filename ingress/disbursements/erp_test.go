package disbursements_test

import (
	"net/http"
	"testing"

	"quittance/disbursement"
	processor "quittance/processors/disbursement"
	"quittance/test/approvals"
	"quittance/test/await"
	"quittance/test/backoffice"
)

// The page of a batch of the ERP says that the ERP is asked, that a release waits for it, and why a batch of other lines is held.
// Nobody is told that lines are paid before the ERP has answered.
func TestAReleaseWaitsForTheERP(t *testing.T) {
	t.Parallel()
	w := approvals.New(t)
	w.Agency(t)
	for _, c := range []struct {
		id   string
		same bool
		want string
	}{{"dsb_1", true, "En paiement"}, {"dsb_2", false, "the ERP has other lines than were approved"}} {
		b, path := w.SealedOf(t, disbursement.SourceERP, c.id, 2), "/agency/batches/"+c.id
		backoffice.Want(t, w.Browsers["Rita"].Get(path), http.StatusOK, "viennent de l’ERP de votre administration", "Il sera interrogé de nouveau")
		w.Press(t, "Ben", path, path[1:]+"/approve")
		backoffice.Want(t, w.Browsers["Cleo"].Get(path), http.StatusOK, "L’ERP est interrogé d’abord")
		w.Press(t, "Cleo", path, path[1:]+"/release")
		waits := w.Batch(t, b.ID)
		if waits.Status != disbursement.StatusApproved || waits.AskedAt.IsZero() {
			t.Fatalf("%+v", waits.Batch)
		}
		after := w.Browsers["Cleo"].Get(path + "?done=release")
		backoffice.Want(t, after, http.StatusOK, "Le paiement commence quand l’ERP aura répondu", "attend la réponse de l’ERP", "Question à l’ERP")
		backoffice.Lacks(t, after, "Le lot est mis en paiement.", path+"/release")
		w.Installation.Ask(processor.SenderERP, b.ID, disbursement.ERPSame{AskedAt: waits.AskedAt, Same: c.same})
		await.Until(t, "the answer in the read model", func() bool { return w.Batch(t, b.ID).AskedAt.IsZero() })
		page := w.Browsers["Rita"].Get(path)
		backoffice.Want(t, page, http.StatusOK, "viennent de l’ERP de votre administration", c.want)
		backoffice.Lacks(t, page, "attend la réponse de l’ERP")
	}
	w.Sealed(t, "dsb_3", 1)
	backoffice.Lacks(t, w.Browsers["Rita"].Get("/agency/batches/dsb_3"), "viennent de l’ERP de votre administration")
}
