/**
 * Code on a page: tabs for the languages, of which the reader's choice is remembered; a button that copies; colours.
 *
 * Samples of operations are written here, in all languages, from the calls that the page carries as data.
 */
import { callOf, codeSample, LANGUAGES, type Callable, type Language } from '../code-samples.js'
import type { PageCalls } from '../page-data.js'
import { element, icon, recall, remember } from './elements.js'

const NAMES: Readonly<Record<string, string>> = {
  ...LANGUAGES,
  sh: 'Shell',
  json: 'JSON',
  http: 'HTTP',
  text: '',
}

let calls: PageCalls | undefined

/** The operations of this page; undefined on guides. */
export function pageCalls(): PageCalls | undefined {
  const text = document.getElementById('calls')?.textContent
  if (calls === undefined && text) calls = JSON.parse(text) as PageCalls
  return calls
}

export function enhanceCode(): void {
  for (const figure of document.querySelectorAll<HTMLElement>('figure.code')) {
    const call = figure.dataset['call']
    const operation = call === undefined ? undefined : pageCalls()?.operations[call]
    if (operation) addSamples(figure, operation)
    makeTabs(figure)
  }
  for (const block of document.querySelectorAll<HTMLElement>('.responses details:not(.failures)'))
    block.append(copyButton(() => block.querySelector('pre')?.textContent ?? ''))
  show(recall('local', 'language') || 'curl')
}

/** Beside curl, which the page has. */
function addSamples(figure: HTMLElement, operation: Callable): void {
  const parts = pageCalls()
  if (!parts) return
  for (const language of Object.keys(LANGUAGES) as Language[])
    if (language !== 'curl')
      figure.append(codeBlock(language, codeSample(language, callOf(parts, operation))))
}

export function codeBlock(language: string, text: string): HTMLPreElement {
  return element('pre', { tabindex: '0', 'data-language': language }, element('code', {}, text))
}

/** A bar with the languages of the figure's blocks, if there are several, and a button that copies. */
export function makeTabs(figure: HTMLElement): void {
  const blocks = () => [...figure.querySelectorAll<HTMLPreElement>('pre')]
  const caption = figure.querySelector('figcaption')
  const languages = blocks().map(block => block.dataset['language'] ?? '')
  if (languages.length > 1) {
    const tabs = element('div', { class: 'tabs', role: 'group', 'aria-label': 'Language' })
    for (const language of languages) {
      const tab = element('button', { type: 'button', 'data-tab': language }, NAMES[language] ?? language)
      tab.addEventListener('click', () => {
        const before = figure.getBoundingClientRect().top
        remember('local', 'language', language === 'sh' ? 'curl' : language)
        show(language)
        // Samples above may have become longer or shorter.
        scrollBy(0, figure.getBoundingClientRect().top - before)
      })
      tabs.append(tab)
    }
    caption?.append(tabs)
  }
  caption?.append(copyButton(() => blocks().find(block => !block.hidden)?.textContent ?? ''))
}

/** Shows one language everywhere; figures that lack it show their first. */
export function show(language: string, within: ParentNode = document): void {
  for (const figure of within.querySelectorAll<HTMLElement>('figure.code')) {
    const blocks = [...figure.querySelectorAll<HTMLPreElement>('pre')]
    const shown = blocks.find(block => block.dataset['language'] === language) ?? blocks[0]
    for (const block of blocks) block.hidden = block !== shown
    for (const tab of figure.querySelectorAll<HTMLElement>('[data-tab]'))
      tab.setAttribute('aria-pressed', String(tab.dataset['tab'] === shown?.dataset['language']))
  }
}

export function chosenLanguage(): string {
  return recall('local', 'language') || 'curl'
}

const COPY = 'M9 9h10v11H9z M5 15V4h10'
const DONE = 'M5 13l4 4L19 7'

export function copyButton(textOf: () => string): HTMLButtonElement {
  const button = element(
    'button',
    { type: 'button', class: 'copy', 'aria-label': 'Copy', title: 'Copy' },
    icon(COPY),
  )
  button.addEventListener('click', () => {
    void copy(textOf()).then(() => {
      button.replaceChildren(icon(DONE))
      button.setAttribute('aria-label', 'Copied')
      setTimeout(() => {
        button.replaceChildren(icon(COPY))
        button.setAttribute('aria-label', 'Copy')
      }, 1_500)
    })
  })
  return button
}

/** Over plain http from another machine there is no clipboard; there a selection is copied. */
async function copy(text: string): Promise<void> {
  const { clipboard } = navigator as { readonly clipboard?: Clipboard }
  if (clipboard) return clipboard.writeText(text)
  const area = element('textarea', { class: 'offscreen', readonly: true })
  area.value = text
  ;(document.querySelector('dialog[open]') ?? document.body).append(area)
  area.select()
  // The only way in pages that are not secure contexts.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  document.execCommand('copy')
  area.remove()
}

/** Coloured tokens, by the names of `::highlight()` in the style sheet. Alternatives are tried in this order. */
const TOKENS =
  /(?<comment>(?<=^|\s)(?:#|\/\/).*$)|(?<name>"(?:[^"\\\n]|\\.)*"(?=\s*:))|(?<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)|(?<number>\b\d[\d_.]*\b)|(?<keyword>\b(?:import|from|const|await|async|function|return|export|if|not|or|and|for|in|as|with|print|def|func|package|var|new|nil|null|true|false|None|True|False|foreach|echo|case|switch|range|defer|let|curl|type|bool|string|int|float)\b)/gm

/** Colours code with ranges (CSS Custom Highlight API), so that it stays plain text. */
export function highlightAll(within: ParentNode): void {
  if (!('highlights' in CSS)) return
  for (const block of within.querySelectorAll('pre[data-language]')) {
    const language = block.getAttribute('data-language')
    if (language !== 'text' && language !== 'http') highlight(block.querySelector('code'))
  }
}

function highlight(code: Element | null): void {
  const text = code?.firstChild
  if (!(text instanceof Text)) return
  for (const match of text.data.matchAll(TOKENS)) {
    const groups: Readonly<Record<string, string | undefined>> = match.groups ?? {}
    const kind = Object.keys(groups).find(name => groups[name] !== undefined)
    if (kind === undefined) continue
    const range = document.createRange()
    range.setStart(text, match.index)
    range.setEnd(text, match.index + match[0].length)
    const known = CSS.highlights.get(kind) ?? new Highlight()
    CSS.highlights.set(kind, known.add(range))
  }
}
