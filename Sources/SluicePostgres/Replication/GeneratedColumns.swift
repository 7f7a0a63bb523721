import SluiceCore
import SluicePorts

/// The generated columns of a table that the WAL lacks, and their computation.
///
/// PostgreSQL publishes generated columns only from version 18 on, and only if the publication says so. Their expressions are immutable
/// and name columns of the same row, so PostgreSQL computes them from the published columns at any later time with the same result.
struct GeneratedColumns: Hashable, Sendable {
    /// The properties of the columns, by index.
    let properties: [Int]
    /// The columns that their expressions name.
    let inputs: [ColumnGeneration.Input]
    private let expressions: [String]

    /// - Parameter published: The columns that the WAL has.
    init(_ mapping: TableMapping, published: [String]) {
        let indices = mapping.facts.indices.filter { mapping.facts[$0].isGenerated && !published.contains(mapping.columns[$0]) }
        properties = indices
        expressions = indices.compactMap { mapping.facts[$0].generation?.expression }
        var inputs: [ColumnGeneration.Input] = []
        for input in indices.flatMap({ mapping.facts[$0].generation?.inputs ?? [] }) where !inputs.contains(input) { inputs.append(input) }
        self.inputs = inputs
    }

    /// Returns the texts of the inputs in a row of a change message. The reader stands behind the row's kind.
    ///
    /// - Parameter old: The texts of the row before, for columns that were not sent.
    static func texts(
        _ relation: borrowing RelationMap, _ reader: MessageReader, old: [String?]?
    ) throws(MalformedMessage) -> [String?] {
        var reader = reader
        var texts = [String?](repeating: nil, count: relation.inputCount)
        for column in 0..<Int(try reader.uint16()) {
            let input = column < relation.inputs.count ? relation.inputs[column] : -1
            switch try reader.byte() {
            case UInt8(ascii: "t"):
                let bytes = unsafe try reader.bytes(Int(try reader.uint32()))
                if input >= 0 { texts[input] = unsafe String(decoding: bytes, as: UTF8.self) }
            case UInt8(ascii: "u"): if input >= 0 { texts[input] = old?[input] }
            default: break
            }
        }
        return texts
    }

    /// SQL that computes the columns of many rows. The parameters are an array of texts for each input, behind one that numbers the rows.
    private var sql: String {
        let names = ["sluice_row"] + inputs.indices.map { "sluice_\($0)" }
        let arrays = ["$1::int[]"] + inputs.indices.map { "$\($0 + 2)::text[]" }
        let casts = ["sluice_row"] + inputs.indices.map { "sluice_\($0)::\(inputs[$0].type) AS \(SQLQuote.identifier(inputs[$0].column))" }
        return """
            SELECT \(expressions.map { "(\($0))" }.joined(separator: ", ")) FROM (
                SELECT \(casts.joined(separator: ", ")) FROM unnest(\(arrays.joined(separator: ", "))) AS u (\(names.joined(separator: ", ")))
            ) AS rows ORDER BY sluice_row
            """
    }

    /// Returns the values of the columns, a row for each of `rows`.
    func values(_ rows: ArraySlice<UncomputedRow>, _ session: PostgresSession) throws -> PostgresResult {
        let numbers: PostgresParameter = .text(StoreText.array(rows.indices.map { String($0) }))
        let texts = inputs.indices.map { input in PostgresParameter.text(StoreText.array(rows.map { $0.texts[input] })) }
        return try session.query(sql, [numbers] + texts)
    }
}
