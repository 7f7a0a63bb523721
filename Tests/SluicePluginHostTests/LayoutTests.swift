import CSluicePlugin
import Foundation
import SluicePluginHost
import Testing

/// A plugin that is built once is loaded for years: docs/plugin-abi.md says where everything is, and there it stays.
@Suite struct `The interface is laid out as its page says:` {
    /// A table of the page, its header first, by cells.
    private static let tables: [[[String]]] = {
        let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../docs/plugin-abi.md")
        let text = (try? String(contentsOf: page.standardized, encoding: .utf8)) ?? ""
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { $0.trimmingCharacters(in: .whitespaces) }
        return lines.split { !$0.hasPrefix("|") }.map { table in
            table.map {
                $0.dropFirst().dropLast().split(separator: "|", omittingEmptySubsequences: false).map { cell in
                    cell.trimmingCharacters(in: .whitespaces)
                }
            }
        }
    }()

    /// The rows below the header that begins with a cell.
    private static func rows(of first: String) throws -> ArraySlice<[String]> {
        try #require(tables.first { $0.first?.first == first }, "no table begins with \(first)").dropFirst(2)
    }

    private static func numbers(in text: String) -> [Int] { text.matches(of: /\d+/).compactMap { Int($0.0) } }

    private static func names(in text: String) -> [String] { text.matches(of: /`(\w+)`/).map { String($0.1) } }

    /// What the page's columns say of a type: the offset of each member, the value of each constant, and under "size" of the whole.
    private static func documented(_ type: String) -> [String: Int] {
        var found: [String: Int] = [:]
        for table in tables {
            guard let header = table.first else { continue }
            for column in header.indices.dropLast() where header[column] == "`\(type)`" && ["at", "32 bits"].contains(header[column + 1]) {
                for row in table.dropFirst(2) where row.count > column + 1 {
                    let numbers = numbers(in: row[column + 1])
                    if row[column] == "its size" { found["its size"] = numbers.first }
                    for (name, number) in zip(names(in: row[column]), numbers) { found[name] = number }
                }
            }
        }
        return found
    }

    private static func members<T>(_ type: T.Type, _ paths: [String: PartialKeyPath<T>]) -> [String: Int] {
        var members = paths.compactMapValues { MemoryLayout<T>.offset(of: $0) }
        members["its size"] = MemoryLayout<T>.size
        return members
    }

    @Test func `the tables of functions`() {
        #expect(
            Self.documented("sluice_host")
                == Self.members(
                    sluice_host.self,
                    [
                        "size": \.size, "abi_major": \.abi_major, "abi_minor": \.abi_minor, "reserved": \.reserved, "context": \.context,
                        "log": \.log, "count": \.count, "custom_data": \.custom_data, "parse_predicate": \.parse_predicate,
                    ]))
        #expect(
            Self.documented("sluice_plugin")
                == Self.members(
                    sluice_plugin.self,
                    [
                        "size": \.size, "abi_major": \.abi_major, "abi_minor": \.abi_minor, "reserved": \.reserved, "state": \.state,
                        "name": \.name, "version": \.version, "config_schema": \.config_schema, "configure": \.configure,
                        "open_session": \.open_session, "check_subscription": \.check_subscription, "check_write": \.check_write,
                        "ingest": \.ingest, "user_changed": \.user_changed, "call_function": \.call_function,
                        "authenticate": \.authenticate,
                    ]))
    }

    /// A later minor version appends members, which the plugins of this one do not set.
    @Test func `a table without the members beyond its size`() throws {
        var table = sluice_plugin()
        withUnsafeMutableBytes(of: &table) { _ = $0.initializeMemory(as: UInt8.self, repeating: 0x55) }
        table.size = UInt32(try #require(MemoryLayout<sluice_plugin>.offset(of: \.check_write)))
        #expect(table.declared.open_session != nil && table.declared.check_subscription != nil)
        #expect(table.declared.check_write == nil && table.declared.ingest == nil && table.declared.user_changed == nil)
        table.size = 0
        #expect(table.declared.abi_major == 0x5555_5555 && table.declared.state == nil && table.declared.configure == nil)
        // The size of version 1.0.
        table.size = UInt32(try #require(MemoryLayout<sluice_plugin>.offset(of: \.call_function)))
        #expect(table.size == 120 && table.declared.user_changed != nil)
        #expect(table.declared.call_function == nil && table.declared.authenticate == nil)
        table.size = .max
        #expect(table.declared.authenticate != nil)
    }

    @Test func `the small types and their constants`() {
        #expect(Self.documented("sluice_text") == Self.members(sluice_text.self, ["data": \.data, "length": \.length]))
        #expect(Self.documented("sluice_sink") == Self.members(sluice_sink.self, ["context": \.context, "write": \.write]))
        let status = ["OK": SLUICE_OK, "DENY": SLUICE_DENY, "FAILED": SLUICE_FAILED].mapValues { Int($0.rawValue) }
        #expect(Self.documented("sluice_status") == status)
        let levels = [
            "DEBUG": SLUICE_LOG_DEBUG, "INFO": SLUICE_LOG_INFO, "WARNING": SLUICE_LOG_WARNING, "ERROR": SLUICE_LOG_ERROR,
        ]
        #expect(Self.documented("sluice_log_level") == levels.mapValues { Int($0.rawValue) })
        #expect(MemoryLayout<sluice_status>.size == 4 && MemoryLayout<sluice_log_level>.size == 4)
    }

    @Test func `batches of rows`() {
        #expect(
            Self.documented("sluice_writes")
                == Self.members(
                    sluice_writes.self,
                    [
                        "size": \.size, "write_size": \.write_size, "type_size": \.type_size, "write_count": \.write_count,
                        "type_count": \.type_count, "user_id": \.user_id, "user_type": \.user_type, "user": \.user, "types": \.types,
                        "writes": \.writes, "arena": \.arena, "arena_length": \.arena_length,
                    ]))
        #expect(
            Self.documented("sluice_write")
                == Self.members(
                    sluice_write.self, ["type": \.type, "operation": \.operation, "before": \.before, "after": \.after]))
        #expect(
            Self.documented("sluice_type")
                == Self.members(
                    sluice_type.self,
                    ["name": \.name, "columns": \.columns, "column_count": \.column_count, "primary_key": \.primary_key]))
        #expect(Self.documented("sluice_row") == Self.members(sluice_row.self, ["cells": \.cells, "arena": \.arena, "count": \.count]))
    }

    @Test func `cells and their tags`() throws {
        let cell = try #require(Self.tables.first { $0.first?.first == "at" && $0.first?.last?.hasPrefix("a cell, ") == true })
        #expect(Self.numbers(in: cell[0][1]) == [MemoryLayout<sluice_cell>.size])
        let places = Dictionary(uniqueKeysWithValues: cell.dropFirst(2).map { ($0[1].prefix { $0 != "," }, Int($0[0])) })
        #expect(places["its tag"] == MemoryLayout<sluice_cell>.offset(of: \.tag))
        #expect(places["`length`"] == MemoryLayout<sluice_cell>.offset(of: \.length))
        #expect(places["`bits`"] == MemoryLayout<sluice_cell>.offset(of: \.bits))
        let tags: [(sluice_tag, String)] = [
            (SLUICE_TAG_ABSENT, "absent"), (SLUICE_TAG_NULL, "null"), (SLUICE_TAG_BOOL, "bool"), (SLUICE_TAG_INT, "int"),
            (SLUICE_TAG_FLOAT, "float"), (SLUICE_TAG_DOUBLE, "double"), (SLUICE_TAG_DECIMAL, "decimal"), (SLUICE_TAG_STRING, "string"),
            (SLUICE_TAG_BINARY, "binary"), (SLUICE_TAG_DATE, "date"), (SLUICE_TAG_OBJECT_ID, "ObjectId"), (SLUICE_TAG_UUID, "UUID"),
            (SLUICE_TAG_LIST, "list"), (SLUICE_TAG_DICTIONARY, "dictionary"), (SLUICE_TAG_LINK, "link"),
        ]
        let rows = try Self.rows(of: "tag")
        #expect(rows.flatMap { Self.numbers(in: $0[0]) } == tags.map { Int($0.0.rawValue) })
        for (tag, word) in tags {
            let row = rows.first { Self.numbers(in: $0[0]).contains(Int(tag.rawValue)) }
            #expect(row?[1].contains(word) == true, "tag \(tag.rawValue) is a \(word): \(row ?? [])")
        }
    }
}
