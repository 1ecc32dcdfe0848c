/** How a person is called. */

export function nameOf(contact: {
  readonly first_name: string | null
  readonly last_name: string | null
}): string {
  return [contact.first_name, contact.last_name].filter(Boolean).join(' ')
}
