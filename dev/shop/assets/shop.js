// Shows the checkout on a case's page. Its messages are for the citizen to read; only the
// back end unlocks the case.
(() => {
  "use strict";
  const section = document.getElementById("payment");
  const start = document.getElementById("start");
  const again = document.getElementById("again");
  const { layout, locale, resize } = section.dataset;
  let checkout;

  function say(what, code) {
    for (const p of document.querySelectorAll("#status [data-say]")) p.hidden = p.dataset.say !== what;
    section.dataset.state = what;
    if (code) document.querySelector('#status [data-say="failed"] code').textContent = code;
    start.hidden = true;
    again.hidden = !["over", "failed", "closed"].includes(what);
  }

  async function ask(path, body) {
    const answer = await fetch(`/cases/${section.dataset.case}/${path}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body || {}),
    });
    if (!answer.ok) throw new Error(`shop_${answer.status}`);
    return answer.json();
  }

  async function pay() {
    if (checkout) checkout.destroy();
    let ready = false;
    say("opening");
    try {
      const { unlocked, client_secret: clientSecret } = await ask("checkout");
      if (unlocked) return say("unlocked");
      checkout = await Quittance.initEmbeddedCheckout({
        clientSecret,
        layout: layout || undefined,
        locale: locale || undefined,
        resize: resize || undefined,
        onReady() {
          ready = true;
          say("locked");
        },
        onSlow: () => say("slow"),
        onPending: () => say("pending"),
        onComplete: complete,
        // The session is over and cannot be paid any more: a new try is a new one.
        onSessionEnd: () => say("over"),
        // The checkout shows errors that can pass by themselves in its own frame.
        onError: ({ code, retryable }) => ready && retryable || say("failed", code),
        onClose() {
          checkout.unmount();
          say("closed");
        },
      });
      checkout.mount("#checkout");
    } catch (e) {
      console.error(e);
      say("failed", e.message);
    }
  }

  // The token is valid for ten minutes, so a failed call is repeated.
  async function complete({ completion_token }) {
    say("checking");
    for (let attempt = 1; attempt <= 5; attempt++) {
      try {
        const { unlocked } = await ask("completion", { completion_token });
        return say(unlocked ? "unlocked" : "unproved");
      } catch {
        await new Promise((done) => setTimeout(done, 2000 * attempt));
      }
    }
    say("unproved");
  }

  start.addEventListener("click", pay);
  again.addEventListener("click", pay);
  start.hidden = false;
})();
