/** Optional fields. */
import t from 'tap'
import { given } from '../../src/core/given.js'

t.test('an undefined field is omitted; null and falsy values are kept', t => {
  const fields: { name: string; note: string | undefined; more: number | null | undefined; flag: boolean } = {
    name: '',
    note: undefined,
    more: null,
    flag: false,
  }
  t.strictSame(given(fields), { name: '', more: null, flag: false })
  t.equal('note' in given(fields), false)
  t.strictSame(given({}), {})
  t.end()
})
