import SluiceCore
import SluicePorts

/// The generated columns of a table that the WAL lacks, and their computation.
///
/// Before version 18, PostgreSQL does not publish generated columns. Their expressions are immutable and name columns of the same row, so
/// PostgreSQL computes them from the published columns at any later time with the same result.
struct GeneratedColumns: Sendable {
    /// The properties of the columns, by index.
    let properties: [Int]
    /// The columns that their expressions name.
    let inputs: [ColumnGeneration.Input]
    private let expressions: [String]

    /// - Parameter published: The columns that the WAL has; nil for those that an older server publishes.
    init(_ mapping: TableMapping, published: [String]? = nil) {
        let indices = mapping.facts.indices.filter { mapping.facts[$0].isGenerated && published?.contains(mapping.columns[$0]) != true }
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

    /// Computes the columns of rows and writes them into the buffer.
    ///
    /// - Parameter forms: The forms of all properties of the class.
    func fill(_ rows: [UncomputedRow], _ forms: [ColumnForm], into buffer: inout RowBuffer, _ session: PostgresSession) throws {
        let numbers: PostgresParameter = .text(StoreText.array(rows.indices.map { String($0) }))
        let texts = inputs.indices.map { input in PostgresParameter.text(StoreText.array(rows.map { $0.texts[input] })) }
        let result = try session.query(sql, [numbers] + texts)
        var number = 0
        var cells: [(row: Int, property: Int, cell: Cell)] = []
        result.forEach { lent in
            for (place, property) in properties.enumerated() {
                // A value that does not fit counts as none, as a property without a column does.
                let cell = (try? unsafe forms[property].decode(lent.bytes(place), into: &buffer)) ?? Cell.null
                cells.append((number, property, cell))
            }
            number += 1
        }
        for (row, property, cell) in cells { buffer.set(rows[row].row, property, cell) }
    }
}
