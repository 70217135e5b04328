// What Python wrote: the record of a tree, or of some trees of a forest with what they share.
const book = JSON.parse(document.getElementById("record").textContent);
const recordOf = (number) => (book.trees ? { ...book, ...book.trees[number] } : book);
// The parts of the page before a tree is shown; each tree of a forest begins with them.
const blank = [...document.querySelectorAll("header, main")].map((element) => element.cloneNode(true));
