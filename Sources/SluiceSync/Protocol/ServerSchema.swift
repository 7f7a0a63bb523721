package import SluiceCore
package import SluiceWire

/// The replica's classes with the property numbers that the gateway allotted in `Welcome`, for decoding rows and encoding changes. Type
/// indices and the order of cells are the replica's. A property unknown to the gateway keeps its place under number 0, which no message
/// carries.
package struct ServerSchema: Sendable {
    package let codec: SchemaCodec
    package var schema: Schema { codec.schema }
    /// The property numbers by type, in the order of its properties.
    let numbers: [[UInt32]]

    package init(local: Schema, server: Schema) {
        codec = SchemaCodec(local.numbered { type, index in server[type.name]?[type.properties[index].name]?.id ?? 0 })
        numbers = codec.schema.types.map { $0.properties.map(\.id) }
    }
}
