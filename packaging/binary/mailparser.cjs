// In the executable this stands in place of `mailparser`, which is large and only needed where a person looks at a mail.
const { requireEmbedded } = require('../../src/world/embedded/embedded-files.ts')

module.exports = requireEmbedded('mailparser.js', require)
