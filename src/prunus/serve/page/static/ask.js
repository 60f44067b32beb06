// The view Ask.

/** Fill the section of this view; called once, when it is first shown. */
export function mount(section) {
  section.append();
}
