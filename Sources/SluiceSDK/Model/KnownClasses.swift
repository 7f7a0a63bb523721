import Synchronization

/// The model classes of the program, for Realms that name none: those of the executable and of the libraries that are loaded at
/// the first look, found in the tables of types that the compiler leaves in them. Classes that are generic or private to a
/// function, and those that say so with `shouldIncludeInDefaultSchema`, are not among them. A runtime that does not show its tables has none.
enum KnownClasses {
    private static let found = Mutex<[ObjectBase.Type]?>(nil)

    static var all: [ObjectBase.Type] {
        if let types = found.withLock({ $0 }) { return types }
        let types = MetadataTables.subclasses(of: [Object.self, EmbeddedObject.self, AsymmetricObject.self])
            .filter { $0.shouldIncludeInDefaultSchema() }.sorted { $0.className() < $1.className() }
        found.withLock { $0 = types }
        return types
    }
}

extension [ModelSchema] {
    /// The properties with an index, by class, as in the file.
    var indexes: [String: Set<String>] {
        let names = map { schema in (schema.name, Set(schema.properties.filter { $0.flags.contains(.indexed) }.map(\.column))) }
        return Dictionary(names, uniquingKeysWith: { first, _ in first })
    }
}

#if os(Linux)
    /// The runtime's own walk over loaded images.
    @_silgen_name("swift_enumerateAllMetadataSections")
    private func enumerateSections(
        _ visit: @convention(c) (UnsafeRawPointer, UnsafeMutableRawPointer) -> Bool, _ context: UnsafeMutableRawPointer)
#else
    /// Runtimes with Objective-C keep no such tables.
    private func enumerateSections(
        _ visit: @convention(c) (UnsafeRawPointer, UnsafeMutableRawPointer) -> Bool, _ context: UnsafeMutableRawPointer
    ) {}
#endif

/// Reads the descriptors of types in loaded images. Their layout is part of Swift's ABI.
private enum MetadataTables {
    /// What the runtime passes for each image: version, two addresses, then ranges, of which the third is that of types.
    private struct Sections {
        var version: UInt
        var base: UnsafeRawPointer?
        var unused: UnsafeRawPointer?
        var unusedToo: UnsafeRawPointer?
        var protocols: Range
        var conformances: Range
        var types: Range
    }

    private struct Range {
        var start: UnsafeRawPointer?
        var length: Int
    }

    private typealias Visitor = @convention(c) (UnsafeRawPointer, UnsafeMutableRawPointer) -> Bool

    private final class Found {
        var classes: [UnsafeRawPointer] = []
    }

    static func subclasses(of roots: [ObjectBase.Type]) -> [ObjectBase.Type] {
        let found = Found()
        enumerateSections(visitSections, Unmanaged.passUnretained(found).toOpaque())
        var isModel: [UnsafeRawPointer: Bool] = [:]
        for root in roots { isModel[descriptor(of: root)] = true }
        let rootDescriptors = Set(isModel.keys)
        return found.classes.compactMap { descriptor in
            guard !rootDescriptors.contains(descriptor), inherits(descriptor, known: &isModel), !isGeneric(descriptor) else { return nil }
            return type(of: descriptor)
        }
    }

    private static let visitSections: Visitor = { sections, context in
        let found = Unmanaged<Found>.fromOpaque(context).takeUnretainedValue()
        let types = sections.load(as: Sections.self).types
        guard let start = types.start else { return true }
        for offset in stride(from: 0, to: types.length, by: 4) {
            let record = start + offset
            let value = record.load(as: Int32.self)
            // The low bits say how the descriptor is referred to; 0: directly, which it is within one image.
            guard value & 3 == 0, value != 0 else { continue }
            let descriptor = record + Int(value)
            if kind(descriptor) == classKind { found.classes.append(descriptor) }
        }
        return true
    }

    // MARK: Descriptors

    private static let classKind: UInt32 = 16

    private static func kind(_ descriptor: UnsafeRawPointer) -> UInt32 { descriptor.load(as: UInt32.self) & 0x1F }
    private static func isGeneric(_ descriptor: UnsafeRawPointer) -> Bool { descriptor.load(as: UInt32.self) & 0x80 != 0 }

    private static func relative(_ field: UnsafeRawPointer) -> UnsafeRawPointer? {
        let offset = field.load(as: Int32.self)
        return offset == 0 ? nil : field + Int(offset)
    }

    /// The descriptor of a class's metadata, which has no Objective-C: kind, superclass, flags, sizes, then the descriptor.
    private static func descriptor(of type: ObjectBase.Type) -> UnsafeRawPointer {
        unsafeBitCast(type as AnyClass, to: UnsafeRawPointer.self).load(fromByteOffset: 40, as: UnsafeRawPointer.self)
    }

    /// Whether a class inherits from one of those marked. Follows the names of superclasses without making the classes.
    private static func inherits(_ descriptor: UnsafeRawPointer, known: inout [UnsafeRawPointer: Bool]) -> Bool {
        if let answer = known[descriptor] { return answer }
        known[descriptor] = false
        // Flags, parent, name, accessor, fields, then the mangled name of the superclass.
        guard let name = relative(descriptor + 20), let superclass = superclass(name) else { return false }
        let answer = inherits(superclass, known: &known)
        known[descriptor] = answer
        return answer
    }

    /// The descriptor that a mangled name consists of: 1 for one in this image, 2 for one that is reached through a pointer.
    private static func superclass(_ name: UnsafeRawPointer) -> UnsafeRawPointer? {
        let target = (name + 1).loadUnaligned(as: Int32.self)
        switch name.load(as: UInt8.self) {
        case 1: return name + 1 + Int(target)
        case 2: return (name + 1 + Int(target)).load(as: UnsafeRawPointer?.self)
        default: return nil
        }
    }

    /// The class itself, by its accessor.
    private static func type(of descriptor: UnsafeRawPointer) -> ObjectBase.Type? {
        typealias Response = (metadata: UnsafeRawPointer, state: Int)
        typealias Accessor = @convention(thin) (Int) -> Response
        guard let accessor = relative(descriptor + 12) else { return nil }
        let response = unsafeBitCast(accessor, to: Accessor.self)(0)
        return unsafeBitCast(response.metadata, to: AnyClass.self) as? ObjectBase.Type
    }
}
