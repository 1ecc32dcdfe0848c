// Replaces `better-sqlite3` in the executable: the same package, with its native module loaded from inside.
const createDatabase = require('../../node_modules/better-sqlite3/lib/database.js')
const { loadNativeAddon } = require('../../src/world/embedded/native-addon.ts')

let addon
module.exports = createDatabase(() => (addon ??= loadNativeAddon('better_sqlite3.node', process.env)), false)
module.exports.SqliteError = require('../../node_modules/better-sqlite3/lib/sqlite-error.js')
