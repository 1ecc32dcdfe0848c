/** Saved blocks on the running appliance. */
import t, { type Test } from 'tap'
import { randomOf, randomStructure } from '../support/content/random-structure.js'
import { openTestAppliance } from '../support/program/appliance.js'

const PATH = '/api/v1/saved-blocks'
const text = (html: string) => ({ id: 'a', type: 'text', content: { html } })
const columns = {
  id: 'c',
  type: 'columns',
  content: { columns: [{ blocks: [text('<p>Shop</p>')], width: 40 }, { children: [text('<p>More</p>')] }] },
}
const saved = { name: ' Our addresses ', json_structure: { blocks: [columns, text('Last')] } }

async function open(t: Test) {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey()
  return {
    ...postroad,
    ask: (path: string) => postroad.get(path, { key }),
    get: (below = '', as = key) => postroad.get(`${PATH}${below}`, { key: as }),
    create: (body: unknown, as = key) => postroad.post(PATH, body, { key: as }),
    change: (id: string, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
      postroad.patch(`${PATH}/${id}`, body, { key, headers }),
    remove: (id: string, headers: Readonly<Record<string, string>> = {}) =>
      postroad.delete(`${PATH}/${id}`, { key, headers }),
  }
}

// answers: DELETE /saved-blocks/{id}: precondition_failed; PATCH /saved-blocks/{id}: precondition_failed
// operations: GET /saved-blocks/{id}
t.test('blocks are saved, listed, found, changed and deleted', async t => {
  const { create, get, change, remove, ask } = await open(t)
  const made = await create(saved)
  const whole = { name: 'Our addresses', is_sandbox: false, json_structure: saved.json_structure }
  t.match(made, { status: 201, body: { data: whole } })
  const { id } = made.body.data as { id: string }
  const etag = made.headers.get('ETag') ?? ''
  t.match(await get(`/${id.toUpperCase()}`), { status: 200, body: { data: { id, ...whole } } })

  await create({ ...saved, name: 'Grüße' })
  const { body: list } = await get()
  t.match(list, { data: [{ name: 'Grüße' }, { name: 'Our addresses' }], pagination: { total: 2 } })
  t.notOk('json_structure' in (list.data[0] as object), 'lists leave the blocks out')
  t.match((await get('?search=gruss')).body.data, [{ name: 'Grüße' }])
  t.equal((await get('?search=other')).body.data.length, 0)

  const stale = { 'If-Match': '"other"' }
  t.match(await change(id, { name: 'New' }, stale), { status: 412 })
  t.match(await change(id, { name: 'New' }, { 'If-Match': etag }), {
    status: 200,
    body: { data: { name: 'New', json_structure: saved.json_structure } },
  })
  const blocks = [text('Other')]
  t.match(await change(id, { json_structure: { blocks } }), {
    body: { data: { name: 'New', json_structure: { blocks } } },
  })
  t.match(await change(id, {}), { status: 200, body: { data: { name: 'New' } } })

  t.match(await remove(id, stale), { status: 412 })
  t.match(await remove(id), { status: 200 })
  for (const gone of [
    await get(`/${id}`),
    await change(id, { name: 'x' }),
    await remove(id),
    await get('/x'),
  ])
    t.match(gone, { status: 404, body: { error: { code: 'not_found' } } })
  const { body: log } = await ask('/api/v1/activity')
  t.match(
    (log.data as { action: string }[]).map(({ action }) => action).filter(one => one.startsWith('saved_')),
    [
      'saved_block.deleted',
      'saved_block.updated',
      'saved_block.updated',
      'saved_block.created',
      'saved_block.created',
    ],
  )
})

// proves: Campaigns and templates > GET /templates
t.test('any document of the contract comes back as it was sent', async t => {
  const { create } = await open(t)
  let kept = 0
  for (let seed = 1; seed <= 40; seed++) {
    const { blocks } = randomStructure(randomOf(seed), { isForeign: false }) as { blocks: object[] }
    if (blocks.length === 0) continue
    const { body } = await create({ name: `Seed ${seed}`, json_structure: { blocks } })
    t.equal(JSON.stringify(body.data.json_structure), JSON.stringify({ blocks }), `seed ${seed}`)
    kept++
  }
  t.ok(kept > 20)
})

// proves: Campaigns and templates > GET /templates
t.test('blocks are validated as those of a template are', async t => {
  const { create, change } = await open(t)
  const nested = (levels: number): object =>
    levels === 1 ? text('x') : { id: 'd', type: 'dropshadow', content: { blocks: [nested(levels - 1)] } }
  const refused: readonly [string, object, RegExp][] = [
    [
      'json_structure.blocks.0.content.colour',
      { ...text('x'), content: { colour: 'red' } },
      /text block "a"/,
    ],
    ['json_structure.blocks.0.type', { id: 'a', type: 'carousel', content: {} }, /must be one of/],
    ['json_structure.blocks.0.content.html', text('{{#if x}}'), /line 1/],
    [
      'json_structure.blocks.0.content.blocks.0.content.blocks.0.content.blocks.0.content.blocks.0.content.blocks.0',
      nested(6),
      /5 levels/,
    ],
  ]
  for (const [path, block, message] of refused)
    t.match(await create({ name: 'x', json_structure: { blocks: [block] } }), {
      status: 400,
      body: { error: { code: 'validation_error', path, message } },
    })
  const faults: readonly [string, object][] = [
    ['name', { ...saved, name: ' ' }],
    ['json_structure', { name: 'x' }],
    ['json_structure.blocks', { name: 'x', json_structure: {} }],
    ['json_structure.blocks', { name: 'x', json_structure: { blocks: [] } }],
    ['json_structure.blocks', { name: 'x', json_structure: { blocks: Array<object>(101).fill(text('x')) } }],
    ['json_structure.settings', { name: 'x', json_structure: { blocks: [text('x')], settings: {} } }],
    [
      'json_structure',
      { name: 'x', json_structure: { blocks: [text('x'.repeat(199_000)), text('x'.repeat(90_000))] } },
    ],
    ['html', { ...saved, html: '<p>x</p>' }],
  ]
  for (const [path, body] of faults)
    t.match(await create(body), { status: 400, body: { error: { code: 'validation_error', path } } }, path)
  const { body } = await create(saved)
  t.match(await change(String(body.data.id), { json_structure: { blocks: [] } }), { status: 400 })
})

// answers: POST /saved-blocks: limit_reached
t.test('a workspace has at most 500, and sees none of another', async t => {
  const { create, get, ...postroad } = await open(t)
  const made = await create(saved)
  postroad.sql(
    `with recursive n(i) as (select 1 union all select i + 1 from n where i < 499)
     insert into saved_blocks select 'x' || i, '${postroad.workspaceId}', 'x', 'x', '{"blocks":[]}', 0, 0 from n`,
  )
  t.match(await create(saved), { status: 403, body: { error: { code: 'limit_reached', message: /500/ } } })
  const sandbox = await postroad.makeKey('--sandbox')
  t.match(await get(`/${String(made.body.data.id)}`, sandbox), { status: 404 })
  t.match(await create(saved, sandbox), { status: 201, body: { data: { is_sandbox: true } } })
})
