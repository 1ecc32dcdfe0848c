/** Repeats with an Idempotency-Key: the answer is the first one, headers included, and another body or file is refused. */
import t, { type Test } from 'tap'
import { openCampaigns } from '../campaigns/open-campaigns.js'

const GIF = 'GIF89a\u0001\0\u0001\0\0\0\0,\0\0\0\0\u0001\0\u0001\0\0\u0002\u0002D\u0001\0;'
const CSV = 'email\nann@x.test\n'

async function open(t: Test) {
  const opened = await openCampaigns(t)
  const send = async (
    path: string,
    idempotencyKey: string,
    body: string | Buffer<ArrayBuffer> | FormData,
    type?: string,
  ) => {
    const response = await fetch(`${opened.baseUrl}/api/v1${path}`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${opened.key}`,
        'Idempotency-Key': idempotencyKey,
        ...(type === undefined ? {} : { 'Content-Type': type }),
      },
      body,
    })
    const header = (name: string) => response.headers.get(name)
    return {
      status: response.status,
      etag: header('ETag'),
      location: header('Location'),
      repeat: header('X-Idempotency-Status'),
      // eslint-disable-next-line @typescript-eslint/no-explicit-any -- matched against what is expected
      body: (await response.json()) as any,
    }
  }
  return { ...opened, send }
}

t.test(
  'a repeat has the ETag and the Location of the first answer, and the ETag works as If-Match',
  async t => {
    const { send, make, draft, baseUrl, key } = await open(t)
    const list_id = await make('/lists', { name: 'News' })
    const template_id = await make('/templates', { name: 'T', html: '<p>Hello</p>' })
    const campaign = { name: 'C', subject: 'S', list_id, template_id }
    const copied = await draft([])
    for (const [path, body] of [
      ['/lists', { name: 'Weekly' }],
      ['/templates', { name: 'U', html: '<p>one</p>' }],
      ['/campaigns', campaign],
      [`/campaigns/${copied}/duplicate`, {}],
    ] as const) {
      const first = await send(path, 'one', JSON.stringify(body), 'application/json')
      t.match(first, { status: 201, repeat: 'new', etag: /^".+"$/, location: /^\/api\/v1\// }, path)
      t.same(
        await send(path, 'one', JSON.stringify(body), 'application/json'),
        { ...first, repeat: 'cached' },
        path,
      )
      const changed = await fetch(baseUrl + first.location!, {
        method: 'PATCH',
        headers: {
          Authorization: `Bearer ${key}`,
          'Content-Type': 'application/json',
          'If-Match': first.etag!,
        },
        body: JSON.stringify({ name: 'Another' }),
      })
      t.equal(changed.status, 200, path)
    }
  },
)

t.test('the same key with another file is refused, and with the same one answered as before', async t => {
  const { send, get, one } = await open(t)
  for (const [path, type, file, other] of [
    ['/contacts/import', 'text/csv', CSV, 'email\nbob@x.test\n'],
    ['/media?file_name=a.gif', 'image/gif', Buffer.from(GIF, 'latin1'), Buffer.from(`${GIF} `, 'latin1')],
  ] as const) {
    const first = await send(path, 'a', file, type)
    t.match(first, { repeat: 'new' }, path)
    t.same(await send(path, 'a', file, type), { ...first, repeat: 'cached' }, path)
    t.match(
      await send(path, 'a', other, type),
      { status: 409, body: { error: { code: 'idempotency_conflict', path: 'Idempotency-Key' } } },
      path,
    )
  }
  t.equal((await get('/contacts/imports')).body.pagination.total, 1, 'one import')
  t.equal(one('select count(*) as count from media'), 1, 'one image')
})

t.test('a form is compared by its file and fields, not by its boundary', async t => {
  const { send, make } = await open(t)
  const form = (file: string, tags: string) => {
    const fields = new FormData()
    fields.set('tags', tags)
    fields.set('file', new File([file], 'people.csv', { type: 'text/csv' }))
    return fields
  }
  await make('/lists', { name: 'News' })
  const first = await send('/contacts/import', 'a', form(CSV, 'vip'))
  t.match(first, { status: 202, repeat: 'new' })
  t.match(await send('/contacts/import', 'a', form(CSV, 'vip')), {
    status: 202,
    repeat: 'cached',
    body: first.body,
  })
  for (const [file, tags] of [
    [CSV, 'gold'],
    ['email\nbob@x.test\n', 'vip'],
  ] as const)
    t.match(await send('/contacts/import', 'a', form(file, tags)), { status: 409 })
})
