/** Search of the reference: a dialog over the index that is loaded when it first opens. `/` and Ctrl-K open it, arrows and Enter choose. */
import type { SearchEntry } from '../page-data.js'
import { element, icon } from './elements.js'

const MOST_RESULTS = 30

interface Candidate extends SearchEntry {
  /** Lower case. */
  readonly text: string
  readonly heading: string
}

export function addSearch(bar: Element): void {
  const button = element(
    'button',
    { type: 'button', class: 'find', 'aria-label': 'Search', 'aria-keyshortcuts': '/ Control+K' },
    icon('M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13z M15.5 15.5L20 20'),
    element('span', {}, 'Search'),
    element('kbd', {}, '/'),
  )
  bar.append(button)
  let palette: Palette | undefined
  const open = () => (palette ??= new Palette()).open()
  button.addEventListener('click', open)
  document.addEventListener('keydown', event => {
    const isTyping =
      event.target instanceof HTMLElement &&
      event.target.closest('input, textarea, select, [contenteditable]') !== null
    const isSlash = event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey
    const isCtrlK = event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey)
    if ((!isSlash && !isCtrlK) || document.querySelector('dialog[open]')) return
    event.preventDefault()
    open()
  })
}

class Palette {
  private readonly input = element('input', {
    type: 'text',
    placeholder: 'Search operations, events and guides',
    'aria-label': 'Search',
    role: 'combobox',
    'aria-expanded': 'true',
    'aria-controls': 'found',
    'aria-autocomplete': 'list',
    autocomplete: 'off',
    spellcheck: 'false',
  })
  private readonly list = element('div', { id: 'found', role: 'listbox', 'aria-label': 'Results' })
  private readonly note = element('p', { class: 'note', role: 'status' })
  private readonly dialog = element(
    'dialog',
    { class: 'search', 'aria-label': 'Search' },
    this.input,
    this.list,
    this.note,
  )
  private index: Promise<readonly Candidate[]> | undefined
  private chosen = 0

  constructor() {
    document.body.append(this.dialog)
    this.input.addEventListener('input', () => void this.update())
    this.input.addEventListener('keydown', event => this.onKey(event))
    this.dialog.addEventListener('click', event => {
      if (event.target === this.dialog) this.dialog.close()
      if (event.target instanceof Element && event.target.closest('a')) this.dialog.close()
    })
  }

  open(): void {
    this.dialog.showModal()
    this.input.select()
    void this.update()
  }

  private load(): Promise<readonly Candidate[]> {
    this.index ??= fetch('/docs/search.json')
      .then(async response => {
        if (!response.ok) throw new Error(`status ${response.status}`)
        const entries = (await response.json()) as readonly SearchEntry[]
        return entries.map(entry => ({
          ...entry,
          heading: entry.title.toLowerCase(),
          text: `${entry.title} ${entry.detail} ${entry.words}`.toLowerCase(),
        }))
      })
      .catch((error: unknown) => {
        this.index = undefined
        throw error
      })
    return this.index
  }

  private async update(): Promise<void> {
    const words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean)
    let index
    try {
      index = await this.load()
    } catch {
      this.note.textContent = 'The search index could not be loaded. Try again in a minute.'
      return
    }
    const found = index
      .map(entry => ({ entry, score: scoreOf(entry, words) }))
      .filter(({ score }) => score > 0)
      .sort((one, other) => other.score - one.score)
      .slice(0, MOST_RESULTS)
    this.list.replaceChildren(...found.map(({ entry }, at) => row(entry, at)))
    this.note.textContent = found.length === 0 ? 'Nothing found.' : ''
    this.choose(0)
  }

  private choose(at: number): void {
    const rows = [...this.list.children]
    this.chosen = Math.max(0, Math.min(at, rows.length - 1))
    rows.forEach((one, index) => one.setAttribute('aria-selected', String(index === this.chosen)))
    const current = rows[this.chosen]
    current?.scrollIntoView({ block: 'nearest' })
    if (current) this.input.setAttribute('aria-activedescendant', current.id)
    else this.input.removeAttribute('aria-activedescendant')
  }

  private onKey(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key]
    if (step !== undefined) {
      event.preventDefault()
      this.choose(this.chosen + step)
    }
    if (event.key === 'Enter') this.list.querySelector<HTMLElement>('[aria-selected=true]')?.click()
  }
}

function row({ title, detail, url, group }: SearchEntry, at: number): HTMLAnchorElement {
  return element(
    'a',
    { role: 'option', id: `found-${at}`, 'aria-selected': 'false', href: url, tabindex: '-1' },
    element('strong', {}, title),
    element('span', {}, detail),
    element('small', {}, group),
  )
}

/** All words must occur; in the title they count more, at its start most. Without words all score above zero. */
function scoreOf({ heading, text, url }: Candidate, words: readonly string[]): number {
  // Pages before their parts, short titles before long ones.
  let score = (url.includes('#') ? 1 : 1.5) - Math.min(heading.length, 60) / 100
  for (const word of words) {
    if (!text.includes(word)) return 0
    if (heading.startsWith(word)) score += 8
    else if (heading.includes(` ${word}`)) score += 5
    else if (heading.includes(word)) score += 3
    else score += 1
  }
  return words.length > 0 && heading === words.join(' ') ? score + 10 : score
}
