/** Code samples of the API reference, run against a server; PHP and Go, where Debian has them, in `test/debian/`. */
import t from 'tap'
import { callOf, codeSample, LANGUAGES, type Language } from '../../../src/http/openapi/code-samples.js'
import { canRun, trySamples } from './run-samples.js'

for (const language of ['curl', 'node', 'python'] as const)
  t.test(
    `samples in ${LANGUAGES[language]} read, create, upload, list and delete`,
    { skip: canRun(language) ? false : 'not installed' },
    t => trySamples(t, language),
  )

t.test(
  'a sample shows required parameters with their examples, and optional ones once they have a value',
  async t => {
    const parts = { base: 'https://mail.example.com/api/v1', token: 'POSTROAD_KEY' }
    const operation = {
      method: 'DELETE',
      path: '/notes/{id}',
      isOpen: false,
      parameters: [
        { name: 'id', in: 'path', isRequired: true, example: 'a/b' },
        { name: 'force', in: 'query', isRequired: false },
      ],
    } as const
    t.equal(
      codeSample('curl', callOf(parts, operation)),
      `curl -X DELETE 'https://mail.example.com/api/v1/notes/a%2Fb' \\\n  -H "Authorization: Bearer $POSTROAD_KEY"`,
    )
    t.match(
      codeSample('curl', callOf(parts, operation, { id: 'c', force: 'true' })),
      "'https://mail.example.com/api/v1/notes/c?force=true'",
    )
  },
)

t.test('an operation without a key sends none in any language', async t => {
  const call = callOf(
    { base: 'https://mail.example.com/api/v1', token: 'POSTROAD_KEY' },
    { method: 'GET', path: '/health', isOpen: true, parameters: [] },
  )
  for (const language of Object.keys(LANGUAGES) as Language[])
    t.notMatch(codeSample(language, call), /Authorization|POSTROAD_KEY/, language)
})
