/** What a caller reads about the field at fault: its path, and what is wrong in words. */
import t from 'tap'
import Type, { type TSchema } from 'typebox'
import { AppError } from '../../src/core/errors.js'
import { textValidator, validator } from '../../src/http/validate.js'

const Send = Type.Object(
  {
    to: Type.Union([
      Type.String({ maxLength: 20 }),
      Type.Array(Type.String({ maxLength: 20 }), { minItems: 1, maxItems: 3 }),
    ]),
    subject: Type.String({ minLength: 1, maxLength: 10 }),
    count: Type.Optional(Type.Integer({ minimum: 1 })),
    scope: Type.Optional(Type.Enum(['all', 'marketing'])),
    note: Type.Optional(Type.Union([Type.String(), Type.Null()])),
    nested: Type.Optional(
      Type.Object({ items: Type.Array(Type.Object({ 'a/b~c': Type.Optional(Type.Integer()) })) }),
    ),
  },
  { additionalProperties: false },
)

function faultOf(
  schema: TSchema,
  value: unknown,
  whole = 'body',
): { path: string | undefined; message: string } | undefined {
  try {
    validator(schema, whole)(value)
    return undefined
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'validation_error') throw error
    return { path: error.path, message: error.message }
  }
}

const right = { to: 'ann@example.com', subject: 'Hello' }

t.test('a valid value is returned unchanged', async t => {
  t.equal(validator(Send, 'body')(right), right)
  for (const to of ['a', ['a'], ['a', 'b', 'c']]) t.equal(faultOf(Send, { ...right, to }), undefined)
})

const faults: readonly (readonly [name: string, value: unknown, path: string, message: string])[] = [
  ['a missing field', { to: 'a' }, 'subject', 'subject is required'],
  ['the first of several missing fields', {}, 'to', 'to is required'],
  ['an unknown field', { ...right, subjekt: 1 }, 'subjekt', 'subjekt is not a known field'],
  ['a wrong type', { ...right, subject: 5 }, 'subject', 'subject must be a string'],
  ['text where a number is meant', { ...right, count: '5' }, 'count', 'count must be an integer'],
  ['null where null is not meant', { ...right, subject: null }, 'subject', 'subject must be a string'],
  ['neither of two types', { ...right, to: 5 }, 'to', 'to must be a string or an array'],
  ['neither text nor null', { ...right, note: 5 }, 'note', 'note must be a string or null'],
  ['a wrong entry of a list', { ...right, to: ['a', 3] }, 'to.1', 'to.1 must be a string'],
  [
    'an entry that is too long',
    { ...right, to: ['a', 'x'.repeat(21)] },
    'to.1',
    'to.1 must have at most 20 characters',
  ],
  ['an empty list', { ...right, to: [] }, 'to', 'to must not be empty'],
  ['a list that is too long', { ...right, to: ['a', 'b', 'c', 'd'] }, 'to', 'to must have at most 3 entries'],
  ['an empty text', { ...right, subject: '' }, 'subject', 'subject must not be empty'],
  [
    'a text that is too long',
    { ...right, subject: 'x'.repeat(11) },
    'subject',
    'subject must have at most 10 characters',
  ],
  ['none of a few words', { ...right, scope: 'some' }, 'scope', 'scope must be one of all, marketing'],
  ['a number out of bounds', { ...right, count: 0 }, 'count', 'count must be >= 1'],
  [
    'a field deep inside',
    { ...right, nested: { items: [{}, { 'a/b~c': 'x' }] } },
    'nested.items.1.a/b~c',
    'nested.items.1.a/b~c must be an integer',
  ],
  ['a missing field deep inside', { ...right, nested: {} }, 'nested.items', 'nested.items is required'],
  ['no object at all', 'text', 'body', 'body must be an object'],
  ['null', null, 'body', 'body must be an object'],
  ['a list for an object', [right], 'body', 'body must be an object'],
]
for (const [name, value, path, message] of faults)
  t.test(`${name} is named`, async t => {
    t.same(faultOf(Send, value), { path, message })
  })

t.test('own fields that shadow those of every object are unknown fields like others', async t => {
  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
    const value: unknown = JSON.parse(`{"to":"a","subject":"b","${name}":{"to":"c"}}`)
    t.same(faultOf(Send, value), { path: name, message: `${name} is not a known field` })
  }
})

t.test('a field that is only inherited is missing', async t => {
  const value: unknown = JSON.parse('{"__proto__":{"to":"a","subject":"b"}}')
  t.match(faultOf(Send, value), { message: /is required|is not a known field/ })
})

t.test('ten thousand wrong entries give one fault, the first', async t => {
  const Many = Type.Object({ to: Type.Array(Type.String()) })
  t.same(faultOf(Many, { to: Array.from({ length: 10_000 }, () => 1) }), {
    path: 'to.0',
    message: 'to.0 must be a string',
  })
})

const Query = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    price: Type.Optional(Type.Number()),
    active: Type.Optional(Type.Boolean()),
    name: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
)
const query = textValidator(Query)
const queryFault = (value: unknown) => {
  try {
    query(value)
    return undefined
  } catch (error) {
    return error instanceof AppError ? error.message : error
  }
}

t.test('a query with a NUL is refused, for no database has to be asked for it', async t => {
  t.equal(queryFault({ name: 'a\0b' }), 'name contains a NUL character')
})

t.test('numbers and truth values in a query string are read as such, text stays text', async t => {
  t.same(query({ limit: '20', price: '-1.5', active: 'true', name: '20' }), {
    limit: 20,
    price: -1.5,
    active: true,
    name: '20',
  })
  t.same(query({ active: 'false' }), { active: false })
  t.same(query({}), {})
})

t.test('what is no number in a query string is refused', async t => {
  for (const limit of ['', ' ', 'abc', '1e3', '0x10', '1.5', '+5', '99999999999999999999', 'NaN', 'Infinity'])
    t.match(queryFault({ limit }), /^limit must be/, limit)
  t.equal(queryFault({ limit: '0' }), 'limit must be >= 1')
  t.equal(queryFault({ limit: '101' }), 'limit must be <= 100')
  for (const active of ['', '1', 'yes', 'TRUE']) t.equal(queryFault({ active }), 'active must be a boolean')
})

t.test('a name given twice, and an unknown one, are refused', async t => {
  t.equal(queryFault({ limit: ['1', '2'] }), 'limit must be an integer')
  t.equal(queryFault({ name: ['a', 'b'] }), 'name must be a string')
  t.equal(queryFault({ page: '2' }), 'page is not a known field')
})

t.test('programs learn by name what a value breaks, with its limit', async t => {
  const ruleOf = (value: unknown) => {
    try {
      validator(Send, 'body')(value)
      return undefined
    } catch (error) {
      return error instanceof AppError ? error.rule : error
    }
  }
  t.same(ruleOf({ subject: 'Hello' }), { name: 'required' })
  t.same(ruleOf({ ...right, subject: 'x'.repeat(11) }), { name: 'max_length', limit: 10 })
  t.same(ruleOf({ ...right, subject: '' }), { name: 'min_length', limit: 1 })
  t.same(ruleOf({ ...right, to: [] }), { name: 'min_items', limit: 1 })
  t.same(ruleOf({ ...right, subject: 3 }), { name: 'type' })
  t.same(ruleOf({ ...right, colour: 'red' }), { name: 'unknown_field' })
  t.same(ruleOf({ ...right, scope: 'some' }), { name: 'enum' })
  t.same(ruleOf({ ...right, count: 0 }), { name: 'minimum', limit: 1 })
})
