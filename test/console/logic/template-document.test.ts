/** The template editor's document: lossless reading and writing, operations, undo, and the table of fields. */
import t from 'tap'
import { copyText, pastedBlocks } from '../../../src/console/web/screens/templates/document/clipboard.js'
import {
  allBlocks,
  blockAtPath,
  blockWithId,
  columnWidths,
  contentOf,
  duplicate,
  find,
  insert,
  makeBlock,
  mayMove,
  move,
  parse,
  remove,
  serialise,
  setColumns,
  settingOf,
  step,
  stepAside,
  typeOf,
  update,
  updateSetting,
  valueOf,
  type EditorDocument,
} from '../../../src/console/web/screens/templates/document/document.js'
import {
  BLOCK_TYPES,
  COLUMN_FIELDS,
  FIELDS,
  LINK_FIELDS,
  THEME_FIELDS,
  type Field,
} from '../../../src/console/web/screens/templates/document/fields.js'
import * as history from '../../../src/console/web/screens/templates/document/history.js'
import { readStructure } from '../../../src/content/blocks/read-structure.js'
import { BLOCK_CONTENTS, StructureSchema } from '../../../src/content/blocks/structure.js'
import { randomOf, randomStructure } from '../../support/content/random-structure.js'

let ids = 0
const newId = () => `new${String(++ids)}`

const text = (id: string) => ({ id, type: 'text', content: { html: `<p>${id}</p>` } })
const columns = (id: string, ...each: readonly (readonly object[])[]) => ({
  id,
  type: 'columns',
  content: { columns: each.map(blocks => ({ blocks })) },
})
const documentOf = (...blocks: readonly object[]) => parse({ blocks, settings: {} })

const idOf = (written: unknown) => (written as { id: string }).id
const keyOf = (document: EditorDocument, id: string) =>
  [...allBlocks(document.blocks)].find(({ written }) => idOf(written) === id)!.key

/** The ids of a document, nested as its blocks are. */
const outline = (document: EditorDocument) => {
  const of = (blocks: EditorDocument['blocks']): unknown[] =>
    blocks.map(({ written, slots }) =>
      slots.length === 0 ? idOf(written) : { [idOf(written)]: slots.map(slot => of(slot.blocks)) },
    )
  return of(document.blocks)
}

t.test('random documents, with foreign properties, are written as they were read', t => {
  for (let seed = 1; seed <= 500; seed++) {
    const structure = randomStructure(randomOf(seed), { isForeign: true })
    t.equal(JSON.stringify(serialise(parse(structure))), JSON.stringify(structure), `seed ${seed}`)
  }
  t.end()
})

t.test('what is no document of blocks is written as it was read', t => {
  const strange: readonly object[] = [
    {},
    { blocks: null },
    { blocks: [null, 1, 'x', [], {}, { type: 'text' }, { type: 'columns', content: null }] },
    { blocks: [{ id: 'a', type: 'columns', content: { columns: [null, { blocks: [] }] } }] },
    { blocks: [{ id: 'a', type: 'columns', content: { columns: 'three' } }] },
    { blocks: [{ id: 'a', type: 'dynamic', content: { blocks: { no: 'list' } } }] },
    { blocks: [{ id: 'a', type: 'carousel', content: { blocks: [text('x')] }, more: 1 }], settings: 7 },
    JSON.parse('{"blocks":[{"__proto__":1,"type":"dropshadow","content":{"__proto__":2}}]}') as object,
  ]
  for (const structure of strange)
    t.equal(JSON.stringify(serialise(parse(structure))), JSON.stringify(structure))
  t.same(serialise(parse(null)), { blocks: [], settings: {} }, 'a template without a structure opens blank')
  t.end()
})

t.test('random operations keep every block, and only valid documents', t => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = randomOf(seed)
    let document = parse(randomStructure(random, { isForeign: false }))
    const idsOf = () => [...allBlocks(document.blocks)].map(({ written }) => idOf(written)).sort()
    const before = idsOf()
    for (let turn = 0; turn < 20; turn++) {
      const keys = [...allBlocks(document.blocks)].map(({ key }) => key)
      const key = keys[random(keys.length)] ?? ''
      const parent = random(3) === 0 ? undefined : keys[random(keys.length)]
      const turns = [
        () => move(document, key, { parent, slot: random(2), at: random(4) }),
        () => step(document, key, random(2) === 0 ? 'up' : 'down'),
        () => stepAside(document, key, random(2) === 0 ? 'left' : 'right'),
      ]
      document = turns[random(3)]!()
    }
    t.same(idsOf(), before, `seed ${seed}: nothing is lost or doubled`)
    t.doesNotThrow(() => readStructure(serialise(document)), `seed ${seed}: the API accepts it`)
  }
  t.end()
})

t.test('undo leads back through every change, and redo forth again', t => {
  for (let seed = 1; seed <= 50; seed++) {
    const random = randomOf(seed)
    let now = 0
    let past = history.begin(parse(randomStructure(random, { isForeign: true })))
    const seen = [JSON.stringify(serialise(past.present.document))]
    for (let turn = 0; turn < 15; turn++) {
      const { document } = past.present
      const [block] = document.blocks
      const changed =
        block && random(2) === 0
          ? remove(document, block.key)
          : insert(document, { parent: undefined, slot: 0, at: 0 }, [makeBlock('spacer', {}, newId)])
      past = history.commit(past, { document: changed, selected: undefined }, undefined, (now += 10))
      seen.push(JSON.stringify(serialise(past.present.document)))
    }
    for (const wanted of seen.toReversed().slice(1)) {
      past = history.undo(past)
      t.equal(JSON.stringify(serialise(past.present.document)), wanted)
    }
    for (const wanted of seen.slice(1)) {
      past = history.redo(past)
      t.equal(JSON.stringify(serialise(past.present.document)), wanted)
    }
  }
  t.end()
})

t.test('typing is undone in pieces, not letter by letter', t => {
  let past = history.begin(documentOf(text('a')))
  const key = keyOf(past.present.document, 'a')
  const type = (html: string, at: number) => {
    const document = update(past.present.document, key, { html })
    past = history.commit(past, { document, selected: key }, 'a.html', at)
  }
  type('H', 1_000)
  type('He', 1_200)
  type('Hello', 5_000)
  past = history.undo(past)
  t.equal(valueOf(find(past.present.document, key)!.block, 'html'), 'He')
  past = history.undo(past)
  t.equal(valueOf(find(past.present.document, key)!.block, 'html'), '<p>a</p>')
  t.equal(history.undo(past), past, 'there is nothing before the beginning')
  t.end()
})

t.test('steps lead a block through columns, and out on the other side', t => {
  let document = documentOf(text('a'), columns('c', [text('x')], []), text('b'))
  const key = keyOf(document, 'a')
  const seen = []
  for (let turn = 0; turn < 5; turn++) {
    document = step(document, key, 'down')
    seen.push(outline(document))
  }
  t.same(seen, [
    [{ c: [['a', 'x'], []] }, 'b'],
    [{ c: [['x', 'a'], []] }, 'b'],
    [{ c: [['x'], ['a']] }, 'b'],
    [{ c: [['x'], []] }, 'a', 'b'],
    [{ c: [['x'], []] }, 'b', 'a'],
  ])
  t.equal(step(document, key, 'down'), document, 'the end is the end')
  for (let turn = 0; turn < 5; turn++) document = step(document, key, 'up')
  t.same(outline(document), ['a', { c: [['x'], []] }, 'b'])
  t.end()
})

t.test('a block moves to the column beside its own', t => {
  const document = documentOf(columns('c', [text('x'), text('y')], [text('z')]))
  const aside = stepAside(document, keyOf(document, 'x'), 'right')
  t.same(outline(aside), [{ c: [['y'], ['x', 'z']] }])
  t.equal(stepAside(document, keyOf(document, 'x'), 'left'), document)
  t.equal(stepAside(document, keyOf(document, 'c'), 'left'), document)
  t.end()
})

t.test('a container cannot be put into itself, nor deeper than the API accepts', t => {
  const card = (id: string, ...blocks: readonly object[]) => ({ id, type: 'dropshadow', content: { blocks } })
  const document = documentOf(card('1', card('2', card('3', card('4')))), card('x', text('y')), text('z'))
  const inside = (id: string) => ({ parent: keyOf(document, id), slot: 0, at: 0 })
  t.notOk(mayMove(document, keyOf(document, '1'), inside('3')))
  t.notOk(mayMove(document, keyOf(document, '1'), inside('1')))
  t.notOk(mayMove(document, keyOf(document, 'x'), inside('4')), 'its text would be on the sixth level')
  t.ok(mayMove(document, keyOf(document, 'z'), inside('4')))
  t.ok(mayMove(document, keyOf(document, 'x'), inside('3')))
  t.equal(move(document, keyOf(document, 'x'), inside('4')), document)
  t.end()
})

t.test('fields keep the spelling that a document has', t => {
  const written = { id: 'a', type: 'button', content: { label: 'Go', bg_color: '#000000', href: '#' } }
  let document = documentOf(written)
  const { key } = document.blocks[0]!
  t.equal(valueOf(document.blocks[0]!, 'text'), 'Go')
  t.equal(valueOf(document.blocks[0]!, 'backgroundColor'), '#000000')
  document = update(document, key, {
    text: 'Stop',
    backgroundColor: '#ffffff',
    borderRadius: 8,
    url: undefined,
  })
  t.same(contentOf(document.blocks[0]!), { label: 'Stop', bg_color: '#ffffff', borderRadius: 8 })
  const themed = updateSetting(parse({ blocks: [], settings: { content_width: 640 } }), 'contentWidth', 500)
  t.same(serialise(themed), { blocks: [], settings: { content_width: 500 } })
  t.equal(settingOf(themed, 'contentWidth'), 500)
  t.same(serialise(updateSetting(themed, 'contentWidth', undefined)), { blocks: [], settings: {} })
  t.end()
})

t.test('columns are added and removed without losing what is in them', t => {
  const document = documentOf(columns('c', [text('x')], [text('y')], [text('z')]))
  const { key } = document.blocks[0]!
  const fewer = setColumns(document, key, [30, 70])
  t.same(outline(fewer), [{ c: [['x'], ['y', 'z']] }])
  t.same(columnWidths(fewer.blocks[0]!), [30, 70])
  const more = setColumns(fewer, key, [undefined, undefined, undefined, undefined])
  t.same(serialise(more), {
    settings: {},
    blocks: [
      {
        id: 'c',
        type: 'columns',
        content: {
          columns: [
            { blocks: [text('x')] },
            { blocks: [text('y'), text('z')] },
            { blocks: [] },
            { blocks: [] },
          ],
        },
      },
    ],
  })
  t.end()
})

t.test('copies have ids of their own, inside too', t => {
  const document = documentOf(columns('c', [text('x')], []))
  const { document: doubled, copy } = duplicate(document, keyOf(document, 'c'), newId)
  const all = [...allBlocks(doubled.blocks)]
  t.equal(all.length, 4)
  t.equal(new Set(all.map(({ written }) => idOf(written))).size, 4)
  t.equal(new Set(all.map(({ key }) => key)).size, 4)
  t.equal(doubled.blocks[1]!.key, copy)

  const pasted = pastedBlocks(copyText(document.blocks), newId)
  t.equal(pasted.length, 1)
  t.not(idOf(pasted[0]!.written), 'c')
  t.same(contentOf(pasted[0]!.slots[0]!.blocks[0]!), { html: '<p>x</p>' })
  for (const other of ['hello', '{', '[]', 'null', '{"kind":"template-blocks","blocks":[{"type":"x"}]}'])
    t.same(pastedBlocks(other, newId), [], other)
  t.end()
})

t.test('the path of a validation error leads to its block', t => {
  const document = documentOf(
    {
      id: 'if',
      type: 'conditional',
      content: { field: 'x', then: [], else: [columns('c', [], [text('x')])] },
    },
    text('last'),
  )
  const at = (path: string) =>
    idOf(blockAtPath(document, `json_structure.${path}`)?.written ?? { id: undefined })
  t.equal(at('blocks.1.content.html'), 'last')
  t.equal(at('blocks.0.content.value'), 'if')
  t.equal(at('blocks.0.content.else.0.content.columns.1.blocks.0.content.html'), 'x')
  t.equal(at('blocks.0.content.else.0.content.columns.1.width'), 'c')
  t.equal(at('settings.contentWidth'), undefined)
  t.end()
})

t.test('a block is found by its id, of several with that id by its path, also after others moved', t => {
  const text = (id: string, html: string) => ({ id, type: 'text', content: { html } })
  const document = parse({ blocks: [text('a', '1'), text('b', '2'), text('b', '3'), { type: 'text' }] })
  const found = (id: string, path: string) => {
    const block = blockWithId(document, id, path)
    return block && contentOf(block)['html']
  }
  t.equal(found('a', 'json_structure.blocks.2'), '1')
  t.equal(found('b', 'json_structure.blocks.2'), '3')
  t.equal(found('b', 'json_structure.blocks.0'), undefined, 'either might be meant')
  t.equal(found('c', 'json_structure.blocks.0'), undefined)
  t.equal(found('', 'json_structure.blocks.3'), undefined)
  t.equal(found('a', ''), '1')
  t.end()
})

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly 'x-aliases'?: readonly string[]
  readonly default?: unknown
  readonly enum?: readonly unknown[]
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
}

t.test('the editor knows every field of the API: spellings, defaults and bounds', t => {
  const same = (fields: readonly Field[], { properties = {} }: Schema, of: string) => {
    t.same(fields.map(({ name }) => name).sort(), Object.keys(properties).sort(), of)
    for (const field of fields) {
      const schema = properties[field.name] ?? {}
      const at = `${of}.${field.name}`
      t.same([...(field.aliases ?? [])].sort(), [...(schema['x-aliases'] ?? [])].sort(), `${at}: spellings`)
      if ('standard' in field) t.equal(field.standard, schema.default, `${at}: default`)
      if (field.kind === 'choice') t.same(field.options, schema.enum, `${at}: options`)
      if (field.kind === 'number') t.same([field.least, field.most], [schema.minimum, schema.maximum], at)
      else if ('most' in field) t.equal(field.most, schema.maxLength, `${at}: length`)
    }
  }
  t.same([...BLOCK_TYPES].sort(), Object.keys(BLOCK_CONTENTS).sort())
  for (const type of BLOCK_TYPES) same(FIELDS[type], BLOCK_CONTENTS[type] as Schema, type)
  const { social, columns } = BLOCK_CONTENTS as unknown as Readonly<Record<string, Schema>>
  same(LINK_FIELDS, social?.properties?.['links']?.items ?? {}, 'social.links')
  same(COLUMN_FIELDS, columns?.properties?.['columns']?.items ?? {}, 'columns.columns')
  same(THEME_FIELDS, (StructureSchema as unknown as Schema).properties?.['settings'] ?? {}, 'settings')
  t.equal(typeOf(parse({ blocks: [{ type: 'toString' }] }).blocks[0]!), undefined)
  t.end()
})
