package import SluiceCore
import SluiceValues

/// Reads the arguments of a query from the command line: one text of extended JSON each.
package enum QueryArguments {
    /// - Throws: `badJSON` with the argument's number from 0, as in `$0`.
    package static func read(_ texts: [String]) throws(SluiceError) -> [Value] {
        var values: [Value] = []
        for (number, text) in texts.enumerated() {
            let json: JSON
            do throws(JSONError) { json = try JSON.located(Array(text.utf8)) } catch {
                throw SluiceError(
                    .badJSON, "The argument $\(number), `\(text)`, is not valid JSON: column \(error.column): \(error.problem).",
                    fix: #"Strings need quotes of their own: --arg '"text"'; dates and ids are {"$date": …}, {"$oid": …}, {"$uuid": …}."#)
            }
            if let form = malformed(json) {
                throw SluiceError(
                    .badJSON, "The argument $\(number), `\(text)`, has no value of '\(form)'.", fix: "Correct the text after it.")
            }
            values.append(ExtendedJSON.value(json))
        }
        return values
    }

    private static let forms: Set<String> = [
        "$oid", "$uuid", "$date", "$numberInt", "$numberLong", "$numberDouble", "$numberDecimal", "$binary",
    ]

    /// Returns the first extended form with an invalid value. On the command line that is a mistake, not a dictionary.
    private static func malformed(_ json: JSON) -> String? {
        switch json {
        case .array(let elements): return elements.lazy.compactMap(malformed).first
        case .object(let members):
            guard members.count == 1, forms.contains(members[0].key) else { return members.lazy.compactMap { malformed($0.value) }.first }
            if case .dictionary = ExtendedJSON.value(json) { return members[0].key }
            return nil
        default: return nil
        }
    }
}
