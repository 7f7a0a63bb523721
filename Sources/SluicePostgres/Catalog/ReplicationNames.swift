/// The names of an app's slot and publication: `sluice_<app>`, shortened and limited to the characters of slot names.
package struct ReplicationNames: Hashable, Sendable {
    package let slot: String
    package let publication: String

    /// Creates the names.
    ///
    /// - Parameter database: The app's database. Slots belong to the whole server, so the names of two databases differ.
    package init(app: String, database: String? = nil) {
        let owner = database.map { "\(app)/\($0)" } ?? app
        let clean = String(
            app.lowercased().unicodeScalars.map { scalar -> Character in
                switch scalar {
                case "a"..."z", "0"..."9", "_": Character(scalar)
                default: "_"
                }
            })
        var name = "sluice_" + clean.prefix(40)
        if clean != owner || clean.count > 40 {
            // Two apps whose cleaned names are equal must not share a slot. FNV-1a of the full name distinguishes them.
            let hash = owner.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
            name += "_" + String(hash & 0xFFFF_FFFF, radix: 16)
        }
        slot = name
        publication = name
    }
}
