import t from 'tap'
import { serverUrls } from '../../src/core/postgres-urls.js'

const cases: readonly [text: string, servers: readonly string[] | undefined][] = [
  ['postgres://a/p', ['postgres://a/p']],
  [
    'postgres://u:p%2Cw@a,b:5433/p?sslmode=require',
    ['postgres://u:p%2Cw@a/p?sslmode=require', 'postgres://u:p%2Cw@b:5433/p?sslmode=require'],
  ],
  ['postgresql://u@[::1]:1,[::2]:2/p', ['postgresql://u@[::1]:1/p', 'postgresql://u@[::2]:2/p']],
  ['postgres://u@localhost/p?host=/run/a', ['postgres://u@localhost/p?host=/run/a']],
  ['postgres://u@/p?host=/run/a', ['postgres://u@localhost/p?host=/run/a']],
  [
    'postgres://u@/p?host=a,b&target_session_attrs=read-write',
    ['postgres://u@localhost/p?host=a&port=5432', 'postgres://u@localhost/p?host=b&port=5432'],
  ],
  [
    'postgres://u@/p?host=a,b&port=1,2',
    ['postgres://u@localhost/p?host=a&port=1', 'postgres://u@localhost/p?host=b&port=2'],
  ],
  ['postgres://u@a,b/p?target_session_attrs=primary', ['postgres://u@a/p', 'postgres://u@b/p']],
  ['postgres://u@a/p?target_session_attrs=standby', undefined],
  ['postgres://u@/p?host=a,b&port=1,2,3', undefined],
  ['postgres://u@/p?host=a,,b', undefined],
  ['postgres://u@a:99999,b/p', undefined],
  ['postgres://u@a,,b/p', undefined],
  ['mysql://a/p', undefined],
  ['postgres://', undefined],
]

t.test('a URL names each of its servers, in both notations of libpq', async t => {
  for (const [text, servers] of cases) t.same(serverUrls(text), servers, text)
})
