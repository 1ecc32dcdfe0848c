/** The segment builder: what can be asked of a field, what stays when it changes, and what is sent. */
import t from 'tap'
import { readConditions } from '../../../src/audience/segments/read-conditions'
import { OPERATORS, MAX_NESTING as API_NESTING } from '../../../src/audience/segments/conditions'
import {
  attributeField,
  attributeOf,
  countRules,
  FIELD_GROUPS,
  fromConditions,
  inputOf,
  isComplete,
  MAX_NESTING,
  NEW_RULE,
  operatorsOf,
  toConditions,
  withField,
  withOperator,
  type Group,
  type Rule,
  type Value,
  type ValueInput,
} from '../../../src/console/web/screens/segments/rules'

const FIELDS: readonly string[] = [...Object.values(FIELD_GROUPS).flat(), attributeField('plan')]
const CAMPAIGN = '0192f000-0000-7000-8000-00000000abcd'

/** A value as a person enters it. */
const ENTERED: Readonly<Record<ValueInput, Value | undefined>> = {
  none: undefined,
  text: 'pro',
  many: ['pro', 'team'],
  number: '12.50',
  days: 30,
  date: '2026-03-01',
  truth: true,
  lists: [CAMPAIGN],
  tags: ['vip'],
  campaign: CAMPAIGN,
}

const entered = (rule: Rule): Rule => {
  const value = ENTERED[inputOf(rule)]
  return { field: rule.field, operator: rule.operator, ...(value === undefined ? {} : { value }) }
}
const group = (...rules: Group['rules']): Group => ({ match: 'all', rules })
const sent = (...rules: Group['rules']) => toConditions(group(...rules)).rules

t.test('the API takes every rule that can be built', t => {
  for (const field of FIELDS)
    for (const operator of operatorsOf(field)) {
      const rule = entered({ field, operator })
      t.ok(isComplete(rule), `${field} ${operator}: is complete`)
      t.doesNotThrow(
        () => readConditions(toConditions(group(rule)) as Parameters<typeof readConditions>[0]),
        `${field} ${operator}`,
      )
    }
  t.equal(MAX_NESTING, API_NESTING)
  t.end()
})

t.test('an attribute can be asked all that the API knows', t => {
  t.same(operatorsOf('attributes.plan').toSorted(), OPERATORS.toSorted())
  t.end()
})

t.test('a rule that is not filled in is not complete', t => {
  t.notOk(isComplete(NEW_RULE))
  for (const rule of [
    { field: attributeField(''), operator: 'is_set' },
    { field: attributeField(' '), operator: 'equals', value: 'x' },
    { field: 'email', operator: 'equals', value: '  ' },
    { field: 'email', operator: 'in', value: ['', ' '] },
    { field: 'lists', operator: 'in', value: [] },
    { field: 'created_at', operator: 'within_days', value: '' },
    { field: 'email', operator: 'contains' },
  ])
    t.notOk(isComplete(rule), JSON.stringify(rule))
  t.ok(isComplete({ field: 'created_at', operator: 'within_days', value: 0 }), 'no days are days')
  t.ok(isComplete({ field: 'subscribed', operator: 'equals', value: false }))
  t.ok(isComplete(group()), 'an empty group matches nobody, which is an answer')
  t.notOk(isComplete(group({ match: 'any', rules: [NEW_RULE] })), 'nor is a group with such a rule')
  t.end()
})

t.test('another field keeps operator and value only where they mean the same', t => {
  const name = { field: 'first_name', operator: 'starts_with', value: 'An' }
  t.same(withField(name, 'last_name'), { ...name, field: 'last_name' })
  t.same(withField(name, 'created_at'), { field: 'created_at', operator: 'before', value: '' })
  t.same(withField(name, 'subscribed'), { field: 'subscribed', operator: 'equals', value: true })
  const list = { field: 'lists', operator: 'not_in', value: [CAMPAIGN] }
  t.same(withField(list, 'tags'), { field: 'tags', operator: 'not_in', value: [] }, 'lists are no tags')
  t.same(withField({ field: 'email', operator: 'is_set' }, 'tags'), { field: 'tags', operator: 'is_set' })
  t.end()
})

t.test('another operator keeps a value of the same kind', t => {
  const rule = { field: 'email', operator: 'contains', value: '@one.test' }
  t.same(withOperator(rule, 'ends_with'), { ...rule, operator: 'ends_with' })
  t.same(withOperator(rule, 'in'), { field: 'email', operator: 'in', value: [] })
  t.same(withOperator(rule, 'is_set'), { field: 'email', operator: 'is_set' }, 'without a value')
  t.same(withOperator({ field: 'email', operator: 'is_set' }, 'equals').value, '')
  const days = { field: 'created_at', operator: 'within_days', value: 7 }
  t.same(withOperator(days, 'not_within_days').value, 7)
  t.equal(withOperator(days, 'before').value, '', 'days are no date')
  t.end()
})

t.test('whatever is chosen after another, the value fits how it is entered', t => {
  for (const from of FIELDS)
    for (const operator of operatorsOf(from))
      for (const field of FIELDS) {
        const rule = withField(entered({ field: from, operator }), field)
        const wanted = ENTERED[inputOf(rule)]
        const isOk =
          operatorsOf(field).some(one => one === rule.operator) &&
          (wanted === undefined) === (rule.value === undefined) &&
          Array.isArray(wanted) === Array.isArray(rule.value)
        if (!isOk) t.fail(`${from} ${operator}, then ${field}: ${JSON.stringify(rule)}`)
      }
  t.end()
})

t.test('numbers typed for attributes are sent as numbers, codes as text', t => {
  const value = (typed: string) =>
    (sent({ field: attributeField('age'), operator: 'equals', value: typed })[0] as Rule).value
  for (const [typed, wanted] of [
    ['42', 42],
    ['-1.5', -1.5],
    ['0', 0],
    ['007', '007'],
    ['1e3', '1e3'],
    ['+49', '+49'],
    ['', ''],
    ['pro', 'pro'],
    ['Infinity', 'Infinity'],
    ['NaN', 'NaN'],
  ] as const)
    t.equal(value(typed), wanted, typed)
  t.equal(
    (sent({ field: 'first_name', operator: 'equals', value: '42' })[0] as Rule).value,
    '42',
    'a name is text',
  )
  t.end()
})

t.test('amounts are sent as numbers, however they are written', t => {
  const value = (typed: string) =>
    (sent({ field: 'purchase_total', operator: 'gte', value: typed })[0] as Rule).value
  t.equal(value('100'), 100)
  t.equal(value('12.50'), 12.5)
  t.equal(value(' 7 '), 7)
  t.equal(value('many'), 'many', 'the API says what is wrong with it')
  t.end()
})

t.test('of several values, blanks around and between them are not sent', t => {
  t.same(sent({ field: 'attributes.plan', operator: 'in', value: ['pro', ' team ', '', '12'] }), [
    { field: 'attributes.plan', operator: 'in', value: ['pro', 'team', 12] },
  ])
  t.same(sent({ field: 'email', operator: 'in', value: ['a@one.test', ' '] }), [
    { field: 'email', operator: 'in', value: ['a@one.test'] },
  ])
  t.end()
})

t.test('groups are sent as they are nested, and read back the same', t => {
  const nested: Group = {
    match: 'any',
    rules: [
      { field: 'email', operator: 'ends_with', value: '@one.test' },
      {
        match: 'all',
        rules: [
          { field: 'tags', operator: 'is_set' },
          { match: 'any', rules: [] },
        ],
      },
    ],
  }
  t.same(toConditions(nested), nested)
  t.same(toConditions(fromConditions(toConditions(nested))), nested)
  t.equal(countRules(nested), 2)
  t.end()
})

t.test('names of attributes that are also fields are told apart by their prefix', t => {
  t.equal(attributeOf('email'), undefined)
  t.equal(attributeOf(attributeField('email')), 'email')
  t.equal(attributeOf('plan'), 'plan', 'the API takes them without prefix too')
  t.end()
})

t.test('of a declared attribute only what fits its type is offered, and the API takes it', t => {
  const field = attributeField('plan')
  for (const [type, operator, input] of [
    ['text', 'equals', 'text'],
    ['number', 'gt', 'number'],
    ['number', 'in', 'many'],
    ['date', 'before', 'date'],
    ['date', 'within_days', 'days'],
    ['boolean', 'equals', 'truth'],
    ['list', 'contains', 'text'],
    ['list', 'is_set', 'none'],
  ] as const) {
    t.ok(operatorsOf(field, type).includes(operator), `${type} ${operator}`)
    t.equal(inputOf({ field, operator }, type), input)
  }
  t.notOk(operatorsOf(field, 'text').includes('gt'))
  t.notOk(operatorsOf(field, 'number').includes('contains'))
  for (const type of ['text', 'number', 'date', 'boolean', 'list'] as const)
    for (const operator of operatorsOf(field, type)) {
      const rule = withOperator(withField(NEW_RULE, field, type), operator, type)
      const value = ENTERED[inputOf(rule, type)]
      const group: Group = { match: 'all', rules: [value === undefined ? rule : { ...rule, value }] }
      t.ok(isComplete(group))
      readConditions(JSON.parse(JSON.stringify(toConditions(group))))
    }
  t.end()
})
