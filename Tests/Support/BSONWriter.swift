package import SluiceCore
package import SluiceValues

/// An encoder of BSON for tests, written from the specification. The product has only a reader.
package struct BSONWriter {
    package private(set) var bytes: [UInt8] = []

    package init() {}

    /// Returns a document of elements that the body appends.
    package static func document(_ body: (inout BSONWriter) -> Void) -> [UInt8] {
        var writer = BSONWriter()
        body(&writer)
        return integer(Int32(writer.bytes.count + 5)) + writer.bytes + [0]
    }

    package static func integer(_ value: some FixedWidthInteger) -> [UInt8] { withUnsafeBytes(of: value.littleEndian, Array.init) }

    /// Returns a string with its length and terminator.
    package static func text(_ text: String) -> [UInt8] { integer(Int32(text.utf8.count + 1)) + Array(text.utf8) + [0] }

    /// Appends an element by its type and the bytes of its value.
    package mutating func element(_ type: BSONType, _ name: String, _ content: [UInt8]) {
        bytes.append(type.rawValue)
        bytes += Array(name.utf8) + [0] + content
    }

    package mutating func binary(_ name: String, subtype: UInt8, _ content: [UInt8]) {
        element(.binary, name, BSONWriter.integer(Int32(content.count)) + [subtype] + content)
    }

    package mutating func decimal(_ name: String, _ value: Decimal128) {
        element(.decimal128, name, BSONWriter.integer(value.low) + BSONWriter.integer(value.high))
    }

    /// Appends a value as a driver writes it: floats as doubles, integers of 32 bits as such, times in milliseconds, links as DBRefs.
    package mutating func value(_ name: String, _ value: Value) {
        switch value {
        case .null: element(.null, name, [])
        case .bool(let value): element(.bool, name, [value ? 1 : 0])
        case .int(let value):
            if let short = Int32(exactly: value) {
                element(.int32, name, BSONWriter.integer(short))
            } else {
                element(.int64, name, BSONWriter.integer(value))
            }
        case .float(let value): element(.double, name, BSONWriter.integer(Double(value).bitPattern))
        case .double(let value): element(.double, name, BSONWriter.integer(value.bitPattern))
        case .decimal(let value): decimal(name, value)
        case .string(let value): element(.string, name, BSONWriter.text(value))
        case .binary(let value): binary(name, subtype: 0, value)
        case .timestamp(let value): element(.date, name, BSONWriter.integer(value.milliseconds))
        case .objectId(let value): element(.objectId, name, value.bytes)
        case .uuid(let value): binary(name, subtype: 4, value.bytes)
        case .list(let elements):
            element(
                .array, name,
                BSONWriter.document { writer in for (index, element) in elements.enumerated() { writer.value("\(index)", element) } })
        case .dictionary(let members): element(.document, name, BSONWriter.document(members))
        case .link(let type, let key):
            element(
                .document, name,
                BSONWriter.document {
                    $0.value("$ref", .string(type))
                    $0.value("$id", key)
                })
        }
    }

    /// Returns a document with its members in the order of their names.
    package static func document(_ members: [String: Value]) -> [UInt8] {
        document { writer in
            for (name, value) in members.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) { writer.value(name, value) }
        }
    }
}

/// An encoder of the archives of `mongodump --archive` for tests.
package struct ArchiveWriter {
    package struct Collection {
        package var database: String
        package var name: String
        package var documents: [[UInt8]]

        package init(_ database: String, _ name: String, _ documents: [[UInt8]]) {
            self.database = database
            self.name = name
            self.documents = documents
        }
    }

    private static let terminator: [UInt8] = [255, 255, 255, 255]

    /// Returns an archive whose blocks have at most `blockDocuments` documents, and whose collections take turns.
    package static func archive(_ collections: [Collection], blockDocuments: Int = 3) -> [UInt8] {
        var bytes: [UInt8] = [0x6D, 0xE2, 0x99, 0x81]
        bytes += BSONWriter.document {
            $0.value("concurrent_collections", .int(4))
            $0.value("version", .string("0.1"))
            $0.value("server_version", .string("7.0.1"))
            $0.value("tool_version", .string("100.9.0"))
        }
        for collection in collections {
            bytes += BSONWriter.document {
                $0.value("db", .string(collection.database))
                $0.value("collection", .string(collection.name))
                $0.value("metadata", .string(#"{"indexes":[]}"#))
                $0.value("size", .int(Int64(collection.documents.reduce(0) { $0 + $1.count })))
                $0.value("type", .string("collection"))
            }
        }
        bytes += terminator
        var rests = collections.map { $0.documents[...] }
        while rests.contains(where: { !$0.isEmpty }) {
            for (index, collection) in collections.enumerated() where !rests[index].isEmpty {
                bytes += head(collection, isEnd: false) + rests[index].prefix(blockDocuments).joined() + terminator
                rests[index] = rests[index].dropFirst(blockDocuments)
            }
        }
        for collection in collections { bytes += head(collection, isEnd: true) + terminator }
        return bytes
    }

    private static func head(_ collection: Collection, isEnd: Bool) -> [UInt8] {
        var checksum = CRC64()
        if isEnd { for document in collection.documents { document.withUnsafeBytes { checksum.update($0) } } }
        return BSONWriter.document {
            $0.value("db", .string(collection.database))
            $0.value("collection", .string(collection.name))
            $0.value("EOF", .bool(isEnd))
            $0.element(.int64, "CRC", BSONWriter.integer(isEnd ? checksum.value : 0))
        }
    }
}
