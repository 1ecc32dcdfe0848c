/** Code samples of the API reference in PHP and Go, which only Debian provides. */
import t from 'tap'
import { LANGUAGES } from '../../src/http/openapi/code-samples.js'
import { trySamples } from '../http/openapi/run-samples.js'

for (const language of ['php', 'go'] as const)
  t.test(`samples in ${LANGUAGES[language]} read, create, upload, list and delete`, t =>
    trySamples(t, language),
  )
