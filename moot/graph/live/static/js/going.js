// Goes to an address of the page without loading it anew.
export function go(address) {
  history.pushState(null, "", address);
  scrollTo(0, 0);
  dispatchEvent(new Event("moved"));
}
