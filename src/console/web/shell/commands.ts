/** Which commands of the palette match what is typed, and in which order. Pure. */

/** What matches at the beginning comes first. */
export function matching<C extends { readonly text: string }>(commands: readonly C[], typed: string): C[] {
  const start = typed.toLowerCase()
  const words = start.split(/\s+/)
  const found = commands.filter(({ text }) => words.every(word => text.toLowerCase().includes(word)))
  const isFirst = ({ text }: C) => text.toLowerCase().startsWith(start)
  return [...found.filter(isFirst), ...found.filter(command => !isFirst(command))]
}

/** A screen on which what is typed can be looked for. */
export interface Search {
  /** Path pattern of the screen. */
  readonly screen: '/messages' | '/contacts' | '/messages/:id'
  /** Parameter that takes it; without one, it is part of the path. */
  readonly query?: string
}

/** An address is looked for in messages and contacts, an id among messages. These come before all commands. */
export function meantBy(typed: string): readonly Search[] {
  if (/^[0-9a-f-]{36}$/i.test(typed)) return [{ screen: '/messages/:id' }]
  if (!typed.includes('@')) return []
  return [
    { screen: '/messages', query: 'to' },
    { screen: '/contacts', query: 'search' },
  ]
}

/** Words that are no address may be of a subject, or a person's name. These come after all commands. */
export function searchesFor(typed: string): readonly Search[] {
  if (typed.length < 2 || typed.includes('@')) return []
  return [
    { screen: '/messages', query: 'subject' },
    { screen: '/contacts', query: 'search' },
  ]
}

/** A record of the workspace that is shown. */
export interface FoundRecord {
  /** Its list in the navigation. */
  readonly kind: 'campaigns' | 'templates' | 'lists' | 'segments' | 'contacts'
  readonly id: string
  /** Its name or address. */
  readonly text: string
}

/** Fewer letters match too much. */
export const MIN_TYPED = 2
const MOST_OF_A_KIND = 5

export function foundAmong(records: readonly FoundRecord[], typed: string): FoundRecord[] {
  return typed.length < MIN_TYPED ? [] : matching(records, typed).slice(0, MOST_OF_A_KIND)
}
