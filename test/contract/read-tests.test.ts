/** What the contract's table takes for asserted: a test that no longer asserts it does not count as showing it. */
import t from 'tap'
import { fold, readTests } from './read-tests.js'

const asserted = (text: string, title = 'a rule') => readTests(text).get(title) ?? ''
const says = (text: string, what: string) => asserted(text).includes(fold(what))

t.test('what stands in an assertion is asserted, what is only sent or commented is not', async t => {
  const file = `
    t.test('a rule', async t => {
      // t.equal(answer.code, 'in_a_comment')
      const answer = await post({ subject: 'sent_only' })
      t.match(answer, {
        status: 400,
        body: { error: { code: 'no_content' } },
      })
    })`
  t.ok(
    says(file, "{ status: 400, body: { error: { code: 'no_content' } } }"),
    'however it is broken into lines',
  )
  t.notOk(says(file, 'in_a_comment'))
  t.notOk(says(file, 'sent_only'))
  t.notOk(says(file.replace('t.match(answer,', 'log(answer,'), 'no_content'), 'its assertion deleted')
})

t.test('a table counts as long as an assertion depends on it', async t => {
  for (const file of [
    `const REFUSED = [{ code: 'too_large' }]
     t.test('a rule', async t => {
       for (const { code } of REFUSED) t.equal((await post(code)).code, code)
     })`,
    `t.test('a rule', async t => {
       for (const [name, code] of [['x', 'too_large']] as const) t.equal((await post(name)).code, code)
     })`,
    `for (const code of ['too_large'])
       t.test('a rule', async t => {
         t.equal((await post(code)).code, code)
       })`,
  ]) {
    t.ok(says(file, "'too_large'"))
    t.notOk(
      says(file.replace(/t\.equal\(\(await post\((\w+)\)\)\.code, code\)/, 'await post($1)'), "'too_large'"),
    )
  }
})

t.test("the file's own functions assert for a test, as long as they do", async t => {
  const file = `
    function isRefused(t, answer, code) {
      t.equal(answer.code, code)
    }
    t.test('a rule', async t => {
      isRefused(t, await post(), 'forbidden')
    })`
  t.ok(says(file, "'forbidden'"))
  t.notOk(says(file.replace('t.equal(answer.code, code)', ''), "'forbidden'"))
})

t.test('a test says nothing for another one', async t => {
  const file = `
    t.test('a rule', async t => {
      t.equal(1, 'mine')
    })
    t.test('another', async t => {
      t.equal(1, 'theirs')
    })`
  t.notOk(says(file, 'theirs'))
  t.ok(asserted(file, 'another').includes("'theirs'"))
})
