// Changesets of Realm's protocol under test by any bytes: they are read, written and read again. Nothing may crash or disagree with itself.
// `make fuzz` runs it.

import SluiceCore
import SluiceRealm

/// Reads a changeset. If it is valid, its instructions must read back from the bytes that they are written as.
func run(_ bytes: [UInt8]) {
    let instructions: [RealmInstruction]
    do throws(SluiceError) {
        instructions = try RealmChangesetReader.instructions(of: bytes)
    } catch {
        if error.code != .badChangeset || error.message.isEmpty { fatalError("an error of the reader: \(error)") }
        return
    }
    do throws(SluiceError) {
        let again = try RealmChangesetReader.instructions(of: try RealmChangesetWriter.bytes(of: instructions))
        if again != instructions { fatalError("the changeset reads back as another one: \(instructions)") }
    } catch { fatalError("a valid changeset is not written: \(error)") }
}

/// The name of the inputs in the last line of the output.
let tested = "changesets"
