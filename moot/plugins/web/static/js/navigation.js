// Shows another view of the page without a reload.
export function go(address) {
  history.pushState(null, "", address);
  scrollTo(0, 0);
  dispatchEvent(new Event("moved"));
}
