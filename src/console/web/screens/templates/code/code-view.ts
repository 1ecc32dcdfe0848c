/**
 * An editor of HTML. Loaded where HTML is edited.
 *
 * It lives in a shadow root: its style sheets are then adopted by script, which the console's policy allows, instead of put in the page.
 */
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { html } from '@codemirror/lang-html'
import {
  bracketMatching,
  defaultHighlightStyle,
  HighlightStyle,
  syntaxHighlighting,
} from '@codemirror/language'
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search'
import { EditorState } from '@codemirror/state'
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view'

export interface CodeOptions {
  readonly text: string
  readonly label: string
  readonly isReadOnly: boolean
  readonly hasLineNumbers: boolean
  readonly change: (text: string) => void
}

export interface CodeView {
  set(text: string): void
  insert(text: string): void
  destroy(): void
}

const theme = EditorView.theme({
  '&': { height: '100%', backgroundColor: 'var(--raised)', color: 'var(--ink)', fontSize: '13px' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-1px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55' },
  '.cm-content': { caretColor: 'var(--ink)' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
  '.cm-gutters': {
    backgroundColor: 'var(--raised)',
    color: 'var(--soft)',
    borderRight: '1px solid var(--line)',
  },
  '.cm-activeLine, .cm-activeLineGutter': {
    backgroundColor: 'color-mix(in srgb, var(--sunken) 60%, transparent)',
  },
  '.cm-selectionBackground, &.cm-focused .cm-selectionBackground': {
    backgroundColor: 'var(--accent-ground) !important',
  },
  '.cm-panels': { backgroundColor: 'var(--sunken)', color: 'var(--ink)' },
})

/** By the names of the tags of the standard style, in the colours of the console, which have enough contrast in both themes. */
const COLOURS = [
  'var(--violet)',
  'var(--accent)',
  'var(--green)',
  'var(--amber)',
  'var(--red)',
  'var(--soft)',
]
const highlighting = HighlightStyle.define(
  defaultHighlightStyle.specs.map(({ tag, color, ...rest }, at) => ({
    tag,
    ...rest,
    ...(color === undefined ? {} : { color: COLOURS[at % COLOURS.length] }),
  })),
)

export function mountCode(place: HTMLElement, options: CodeOptions): CodeView {
  const root = place.shadowRoot ?? place.attachShadow({ mode: 'open' })
  let current = options.text
  const view = new EditorView({
    parent: root,
    root,
    state: EditorState.create({
      doc: options.text,
      extensions: [
        options.hasLineNumbers ? lineNumbers() : [],
        history(),
        drawSelection(),
        bracketMatching(),
        highlightActiveLine(),
        highlightSelectionMatches(),
        html({ autoCloseTags: true }),
        syntaxHighlighting(highlighting),
        EditorView.lineWrapping,
        theme,
        EditorState.readOnly.of(options.isReadOnly),
        EditorView.contentAttributes.of({ 'aria-label': options.label }),
        keymap.of([...defaultKeymap, ...searchKeymap, ...historyKeymap]),
        EditorView.updateListener.of(({ docChanged, state }) => {
          if (!docChanged) return
          const text = state.doc.toString()
          if (text === current) return
          current = text
          options.change(text)
        }),
      ],
    }),
  })
  return {
    set(text) {
      if (text === current) return
      current = text
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } })
    },
    insert(text) {
      view.dispatch(view.state.replaceSelection(text))
      view.focus()
    },
    destroy: () => view.destroy(),
  }
}
