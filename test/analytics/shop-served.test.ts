/** Conversions and product views on the running appliance. */
import t, { type Test } from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'

const CONTACT = '0192f000-0000-7000-8000-00000000000b'
const sale = { contact_id: CONTACT, value: 12.5 }
const view = { contact_email: 'ann@x.example', product_id: 'jug-1' }

async function open(t: Test) {
  const postroad = await openTestAppliance(t)
  const { key } = postroad
  return {
    ...postroad,
    convert: (body: unknown) => postroad.post('/api/v1/conversions', body, { key }),
    look: (body: unknown) => postroad.post('/api/v1/track/product-view', body, { key }),
    list: (query = '') => postroad.get(`/api/v1/conversions${query}`, { key }),
  }
}

/** JSON of exactly so many octets. */
const metadataOf = (octets: number) => ({ note: 'x'.repeat(octets - '{"note":""}'.length) })

// proves: Errors > contact_not_found
// answers: POST /conversions: contact_not_found
// at limit: Postroad > metadata of conversions and product views
t.test('a conversion of an unknown contact is a 404 contact_not_found and is not recorded', async t => {
  const { convert, list } = await open(t)
  for (const body of [
    sale,
    { ...sale, value: -5, currency: 'eur', metadata: { order: 7 } },
    { ...sale, value: 0 },
    { ...sale, metadata: metadataOf(8_192) },
  ])
    t.match(await convert(body), {
      status: 404,
      body: { error: { code: 'contact_not_found', path: 'contact_id' } },
    })
  t.same((await list()).body, {
    data: [],
    pagination: { total: 0, limit: 100, offset: 0, has_more: false, next_cursor: null },
  })
})

// proves: Other resources > Conversion contact_id (required) value (required)
// proves: Deliverability, domains, analytics, tracking > POST /conversions
// proves: decisions: Deliverability > Conversion contact_id UUID value number
// past limit: Postroad > metadata of conversions and product views
t.test('an invalid conversion is refused, naming the field, before the contact is looked up', async t => {
  const { convert } = await open(t)
  for (const [body, path] of [
    [{ value: 1 }, 'contact_id'],
    [{ contact_id: CONTACT }, 'value'],
    [{ ...sale, value: '12.50' }, 'value'],
    [{ ...sale, value: null }, 'value'],
    [{ ...sale, currency: 'EURO' }, 'currency'],
    [{ ...sale, currency: 'ZZZ' }, 'currency'],
    [{ ...sale, metadata: [] }, 'metadata'],
    [{ ...sale, metadata: metadataOf(8_193) }, 'metadata'],
    [{ ...sale, note: 'x' }, 'note'],
  ] as const)
    t.match(
      await convert(body),
      { status: 400, body: { error: { code: 'validation_error', path } } },
      JSON.stringify(body).slice(0, 100),
    )
})

// proves: Other resources > Product view (tracking) contact_email (required)
// proves: Deliverability, domains, analytics, tracking > POST /track/product-view; Errors > contact_not_found
// proves: decisions: Deliverability > Product view product_name product_url image_url
// answers: POST /track/product-view: contact_not_found
// at limit: Postroad > metadata of conversions and product views
t.test('a product view of an unknown contact is a 404 contact_not_found', async t => {
  const { look, ...postroad } = await open(t)
  for (const body of [
    view,
    {
      ...view,
      product_name: 'Blue jug',
      product_url: 'https://shop.example/jug',
      image_url: 'http://shop.example/jug.png',
      price: 12.5,
      currency: 'EUR',
      category: 'Kitchen',
      metadata: metadataOf(8_192),
    },
  ])
    t.match(await look(body), {
      status: 404,
      body: { error: { code: 'contact_not_found', path: 'contact_email' } },
    })
  t.equal(postroad.rowCounts()['product_views'], 0)
})

// proves: Other resources > Product view (tracking) contact_email (required)
// proves: Deliverability, domains, analytics, tracking > POST /track/product-view
// proves: decisions: Deliverability > Product view product_name product_url image_url
// past limit: Postroad > metadata of conversions and product views
t.test('an invalid product view is refused, naming the field, before the contact is looked up', async t => {
  const { look } = await open(t)
  for (const [body, path] of [
    [{ product_id: 'jug-1' }, 'contact_email'],
    [{ ...view, contact_email: 'nobody' }, 'contact_email'],
    [{ contact_email: 'ann@x.example' }, 'product_id'],
    [{ ...view, product_id: '' }, 'product_id'],
    [{ ...view, product_id: 7 }, 'product_id'],
    [{ ...view, product_url: 'javascript:alert(1)' }, 'product_url'],
    [{ ...view, image_url: '/jug.png' }, 'image_url'],
    [{ ...view, price: '12.50' }, 'price'],
    [{ ...view, currency: 'XX1' }, 'currency'],
    [{ ...view, metadata: metadataOf(8_193) }, 'metadata'],
    [{ ...view, colour: 'blue' }, 'colour'],
  ] as const)
    t.match(
      await look(body),
      { status: 400, body: { error: { code: 'validation_error', path } } },
      JSON.stringify(body).slice(0, 100),
    )
})

// proves: Deliverability, domains, analytics, tracking > POST /track/product-view | GET /conversions
// proves: Deliverability, domains, analytics, tracking > POST /conversions
// proves: decisions: Deliverability > Conversion contact_id UUID value number
// operations: GET /conversions/{id}
t.test('conversions and product views are recorded, by default in the currency of the workspace', async t => {
  const { convert, look, list, key, ...postroad } = await open(t)
  const { body } = await postroad.post('/api/v1/contacts', { email: 'ann@x.example' }, { key })
  const { id } = body.data
  t.match(await look({ ...view, contact_email: 'Ann@X.example' }), {
    status: 201,
    body: { data: { contact_id: id, product_id: 'jug-1' } },
  })
  t.match(await convert({ contact_id: id, value: 20 }), {
    status: 201,
    body: { data: { contact_id: id, value: 20, currency: 'USD', message_id: null, campaign_id: null } },
  })
  t.match(await convert({ contact_id: id, value: -5, currency: 'eur' }), {
    body: { data: { currency: 'EUR' } },
  })
  await postroad.delete(`/api/v1/contacts/${id}`, { key })
  const { data } = (await list()).body
  t.match((await list(`/${data[0].id}`)).body, { data: { id: data[0].id, value: -5, currency: 'EUR' } })
  t.match(await list(`/${CONTACT}`), { status: 404, body: { error: { code: 'not_found' } } })
  t.match((await list()).body, {
    data: [{ value: -5 }, { value: 20 }],
    pagination: { total: 2 },
  })
  t.match(await convert({ contact_id: id, value: 1 }), { status: 404 }, 'what was bought outlives a contact')
})

t.test('nothing is recorded for a deleted contact until it is restored', async t => {
  const { convert, look, list, key, ...postroad } = await open(t)
  const { body } = await postroad.post('/api/v1/contacts', { email: 'ann@x.example' }, { key })
  const { id } = body.data
  t.match(await convert({ contact_id: id, value: 20 }), { status: 201 })
  await postroad.post('/api/v1/contacts/delete-all', { confirm: true }, { key })
  t.match(await convert({ contact_id: id, value: -20 }), {
    status: 404,
    body: { error: { code: 'contact_not_found' } },
  })
  t.match(await look(view), { status: 404, body: { error: { code: 'contact_not_found' } } })
  await postroad.post('/api/v1/contacts/restore', { all: true }, { key })
  t.match(await convert({ contact_id: id, value: -20 }), { status: 201, body: { data: { value: -20 } } })
  t.match(await look(view), { status: 201, body: { data: { contact_id: id } } })
  t.match((await list()).body, { data: [{ value: -20 }, { value: 20 }], pagination: { total: 2 } })
})
