/** Texts of the template editor: merge tags in them, and changes that keep the cursor. */
import { EditorState, Selection, TextSelection, type Transaction } from 'prosemirror-state'
import t from 'tap'
import { splitTags } from '../../../src/content/merge/parse-template'
import {
  differenceTo,
  linkTo,
  stateOf,
  tagInserted,
} from '../../../src/console/web/screens/templates/text/edits'
import { nameIn, piecesOf, tagFor } from '../../../src/console/web/screens/templates/text/merge-tags'
import { readPlain, richSchema, writePlain } from '../../../src/console/web/screens/templates/text/schema'

const { nodes, marks } = richSchema

/** A line of text with the cursor at `|`, or a selection between two of them. */
function lineAt(written: string): EditorState {
  const [before = '', between, after] = written.split('|')
  const doc = readPlain(written.replaceAll('|', ''))
  const start = readPlain(before).content.size
  const end = after === undefined ? start : start + readPlain(between ?? '').content.size
  const selection = TextSelection.create(doc, start, end)
  return EditorState.create({ doc, selection })
}

/** The text with the cursor, or what is selected, marked by `|`. */
function shown({ doc, selection: { from, to } }: EditorState): string {
  const text = (start: number, end: number) =>
    doc.textBetween(start, end, '', leaf => leaf.type.spec.leafText?.(leaf) ?? '')
  const inside = from === to ? '|' : `|${text(from, to)}|`
  return text(0, from) + inside + text(to, doc.content.size)
}

const after = (state: EditorState, change: Transaction | undefined) => (change ? state.apply(change) : state)

t.test('a merge tag comes to the cursor, which stands after it', t => {
  const put = (written: string) => {
    const state = lineAt(written)
    return shown(state.apply(tagInserted(state, '{{first_name|there}}', 'cursor')))
  }
  t.equal(put('Hello |'), 'Hello {{first_name|there}}|')
  t.equal(put('Hello |!'), 'Hello {{first_name|there}}|!')
  t.equal(put('|Hello'), '{{first_name|there}}|Hello')
  t.equal(put('Hello |you|!'), 'Hello {{first_name|there}}|!', 'and takes the place of what is selected')
  t.end()
})

t.test('in a text that never had a cursor a merge tag comes last', t => {
  const opened = EditorState.create({ doc: readPlain('Your headline') })
  const typedBeside = after(opened, differenceTo(opened, readPlain('Hello ')))
  t.equal(shown(typedBeside), '|Hello ', 'where a text begins there is no cursor of anybody')
  t.equal(
    shown(typedBeside.apply(tagInserted(typedBeside, '{{first_name}}', 'end'))),
    'Hello {{first_name}}|',
  )
  t.end()
})

t.test('a tag in formatted text has the formats of the text before it', t => {
  const bold = [marks.strong.create()]
  const doc = nodes.doc.create(null, [
    nodes.paragraph.create({ isBare: false }, [richSchema.text('Dear ', bold), richSchema.text('you')]),
  ])
  const state = EditorState.create({ doc, selection: TextSelection.create(doc, 6) })
  const { doc: changed } = state.apply(tagInserted(state, '{{first_name}}', 'cursor'))
  const paragraph = changed.firstChild!
  t.same(
    paragraph.children.map(node => [node.type.name, node.marks.map(({ type }) => type.name)]),
    [
      ['text', ['strong']],
      ['merge_tag', ['strong']],
      ['text', []],
    ],
  )
  t.end()
})

t.test('what changes elsewhere in a text leaves the cursor where it is', t => {
  const changed = (written: string, wanted: string) => {
    const state = lineAt(written)
    return shown(after(state, differenceTo(state, readPlain(wanted))))
  }
  t.equal(changed('Hello| world', 'Hello big world'), 'Hello| big world')
  t.equal(changed('Hello world|', 'Oh hello world'), 'Oh hello world|')
  t.equal(changed('Hello world|', 'Hello'), 'Hello|', 'as far as there is text')
  t.equal(changed('aaa|', 'aa'), 'aa|', 'whichever of equal letters goes')
  t.equal(changed('Hi {{first_name}}!|', 'Hi {{first_name}}, welcome!'), 'Hi {{first_name}}, welcome!|')
  const same = lineAt('Same|')
  t.equal(differenceTo(same, readPlain('Same')), undefined)
  t.end()
})

t.test('a change from elsewhere always leads to the wanted text, and is told from typing', t => {
  const words = ['', 'a', 'aa', 'ab', 'ba', 'aba', 'a {{b}} a', '{{b}}', '{{b}}{{b}}', '{{c}} a']
  for (const from of words)
    for (const to of words) {
      const state = lineAt(`${from}|`)
      const change = differenceTo(state, readPlain(to))
      const now = after(state, change)
      if (writePlain(now.doc) !== to) t.fail(`${from} to ${to}: ${writePlain(now.doc)}`)
      if (change && change.getMeta('outside') !== true) t.fail(`${from} to ${to} looks typed`)
    }
  t.end()
})

t.test('a line of text is written as it was read, without line breaks', t => {
  for (const text of [
    '',
    'Hello',
    'Hello ',
    '{{first_name|there}}, hello',
    'a {{b}}{{c}} d',
    '{{#if x}}y{{/if}}',
    '{{',
  ])
    t.equal(writePlain(readPlain(text)), text)
  t.equal(writePlain(readPlain('one\n two\t three')), 'one two three')
  t.end()
})

const PARAGRAPH = 'See our shop today'

function paragraphAt(from: number, to = from, linked?: readonly [number, number]): EditorState {
  const link = marks.link.create({ kept: { href: 'https://old.test/' } })
  const [start, end] = linked ?? [0, 0]
  const pieces = [
    [PARAGRAPH.slice(0, start), []],
    [PARAGRAPH.slice(start, end), [link]],
    [PARAGRAPH.slice(end), []],
  ] as const
  const texts = pieces.flatMap(([text, having]) => (text === '' ? [] : [richSchema.text(text, having)]))
  const doc = nodes.doc.create(null, [nodes.paragraph.create({ isBare: false }, texts)])
  return EditorState.create({ doc, selection: TextSelection.create(doc, from + 1, to + 1) })
}

/** The text of each link with its target. */
function linksIn({ doc }: EditorState): [string, string][] {
  const found: [string, string][] = []
  doc.descendants(node => {
    const link = marks.link.isInSet(node.marks)
    if (link) found.push([node.text ?? '', (link.attrs['kept'] as { href: string }).href])
  })
  return found
}

const link = (state: EditorState, href: string | undefined): EditorState => {
  let changed = state
  linkTo(href)(state, transaction => (changed = state.apply(transaction)))
  return changed
}

t.test('a link is set on what is selected', t => {
  t.same(linksIn(link(paragraphAt(8, 12), 'https://shop.test/')), [['shop', 'https://shop.test/']])
  const again = link(paragraphAt(4, 18, [8, 12]), 'https://new.test/')
  t.same(linksIn(again), [['our shop today', 'https://new.test/']], 'over one that is there')
  t.end()
})

t.test('a link that the cursor is in is changed or taken away as a whole', t => {
  const inside = paragraphAt(10, 10, [8, 12])
  t.equal(stateOf(inside).href, 'https://old.test/')
  t.same(linksIn(link(inside, 'https://new.test/')), [['shop', 'https://new.test/']])
  t.same(linksIn(link(inside, undefined)), [])
  t.equal(link(inside, undefined).doc.textContent, PARAGRAPH, 'its text stays')
  t.end()
})

t.test('without a selection the address becomes the text', t => {
  const state = link(paragraphAt(0), 'https://shop.test/')
  t.same(linksIn(state), [['https://shop.test/', 'https://shop.test/']])
  t.equal(state.doc.textContent, `https://shop.test/${PARAGRAPH}`)
  t.end()
})

t.test('the tools show what holds at the cursor', t => {
  const heading = nodes.doc.create(null, [
    nodes.heading2.create(null, [richSchema.text('Title', [marks.em.create()])]),
  ])
  const state = EditorState.create({ doc: heading, selection: Selection.atEnd(heading) })
  t.same(stateOf(state), { formats: ['em'], shape: 'heading2', list: undefined, href: undefined })
  const item = nodes.list_item.create(null, [
    nodes.paragraph.create({ isBare: false }, [richSchema.text('One')]),
  ])
  const list = nodes.doc.create(null, [nodes.ordered_list.create(null, [item])])
  t.match(stateOf(EditorState.create({ doc: list, selection: Selection.atEnd(list) })), {
    formats: [],
    shape: 'paragraph',
    list: 'ordered_list',
  })
  t.end()
})

t.test('the editor finds the merge tags that the server replaces', t => {
  for (const text of [
    '',
    'no tag',
    '{{first_name}}',
    'Hi {{first_name|there}}, {{ attributes.plan }}!',
    '{{company|our friends|upper}}',
    '{{a}}{{b}}',
    '{{#if plan}}{{plan}}{{else}}none{{/if}}',
    '{{#each items}}{{this.name}}{{/each}}',
    'written as \\{{first_name}}, meant as it is',
    '{{{items}}} and {{first_name}}',
    '{{! a note }}{{first_name}}',
  ]) {
    const tags = piecesOf(text).filter((_, at) => at % 2 === 1)
    const values = splitTags(text).flatMap(piece =>
      piece.kind === 'tag' && !piece.isRaw && !/^([#/]|else\b)/.test(piece.inner) ? [piece.inner] : [],
    )
    t.same(
      tags.map(tag => tag.slice(2, -2).trim()),
      values,
      text,
    )
    t.equal(piecesOf(text).join(''), text, 'nothing gets lost')
  }
  t.end()
})

t.test('a fallback cannot end its tag', t => {
  t.equal(tagFor('first_name', ''), '{{first_name}}')
  t.equal(tagFor('first_name', ' there '), '{{first_name|there}}')
  t.equal(tagFor('first_name', 'you}} {{email}} | x'), '{{first_name|you email  x}}')
  t.equal(tagFor('first_name', '{}|'), '{{first_name}}')
  t.equal(nameIn('{{ first_name | there }}'), 'first_name')
  t.end()
})
