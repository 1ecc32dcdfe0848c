// In the executable this stands in place of the package `bindings`, of which better-sqlite3 asks its native part.
const { loadNativeAddon } = require('../../src/world/embedded/native-addon.ts')

module.exports = name => loadNativeAddon(name, process.env)
