// Shows the button that prints the page; without this script the hint beside it stays.
(() => {
  const button = document.getElementById("print"), hint = document.getElementById("print-hint");
  if (!button) return;
  button.hidden = false;
  if (hint) hint.hidden = true;
  button.addEventListener("click", () => print());
})();
