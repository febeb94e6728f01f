// A link to a function whose declaration is folded unfolds it: not all browsers do that by themselves.
function unfold() {
  const target = document.getElementById(location.hash.slice(1));
  const folded = target && target.closest("details");
  if (folded) {
    folded.open = true;
    target.scrollIntoView();
  }
}
addEventListener("hashchange", unfold);
addEventListener("load", unfold);
