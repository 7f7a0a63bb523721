// BSON documents under test by any bytes, as `sluice migrate data` reads them. Nothing may crash. `make fuzz` runs it.

import SluiceCore
import SluiceValues

/// Reads a document. If it is valid, the text of its value must be JSON. The value has each key once, unlike a document.
func run(_ bytes: [UInt8]) {
    let json: JSON
    do throws(BSONError) { json = try BSON.json(bytes) } catch {
        if error.problem.isEmpty || !(0...bytes.count).contains(error.offset) { fatalError("an error of the reader: \(error)") }
        return
    }
    let text = ExtendedJSON.json(ExtendedJSON.value(json)).text
    guard let again = try? JSON.parse(text), again.text == text else { fatalError("the document's text is no JSON: \(text)") }
}

/// The name of the inputs in the last line of the output.
let tested = "BSON documents"
