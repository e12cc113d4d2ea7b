# SPDX-License-Identifier: Apache-2.0
"""Networks of one convolution, matrix product, pool or resizing each, for tflite_operators.py."""
import numpy as np

from tflite_draw import NO_ACTIVATION, NO_TENSOR, SAME_PADDING, VALID_PADDING
from tflite_file import Quantization


def convolved_size(size, kernel, stride, padding, dilation=1):
    if padding == SAME_PADDING:
        return -(-size // stride)
    return (size - ((kernel - 1) * dilation + 1)) // stride + 1


def bias(net, draw, type_, count, scale):
    values = draw.numbers(-2000, 2000, count)
    return net.constant("i64" if type_ == "i16" else "i32", values, Quantization(scale))


def bias_or_none(net, draw, type_, count, scale):
    return bias(net, draw, type_, count, scale) if draw.number(0, 4) else NO_TENSOR


def filter_codes(net, draw, type_, shape, scales, axis=0):
    """uint8 has a zero point in the middle, int8 none."""
    if type_ == "u8":
        zero_point = draw.number(90, 166)
        return net.constant("u8", draw.numbers(0, 256, shape), Quantization(scales, zero_point))
    return net.constant("i8", draw.numbers(-127, 128, shape), Quantization(scales, 0, axis))


def add_convolution(net, inputs, output, depth_multiplier=None, **fields):
    """Depthwise if it has a depth_multiplier."""
    if depth_multiplier is None:
        net.operator("CONV_2D", inputs, [output], "Conv2D", **fields)
    else:
        fields["depth_multiplier"] = depth_multiplier
        net.operator("DEPTHWISE_CONV_2D", inputs, [output], "DepthwiseConv2D", **fields)


def convolution(net, draw, type_, depthwise=False, groups=1):
    height = draw.number(3, 12)
    width = draw.number(3, 12)
    channels = draw.number(1, 9) * groups
    filters = draw.number(1, 20) * groups
    kernel_h = draw.number(1, 4)
    kernel_w = draw.number(1, 4)
    dilation = draw.one_of([1, 1, 2])
    stride_h = draw.number(1, 4) if dilation == 1 else 1
    stride_w = draw.number(1, 4) if dilation == 1 else 1
    padding = draw.number(0, 2)
    if dilation > 1 and padding == VALID_PADDING:
        height += 4
        width += 4
    scale = draw.scale()
    multiplier = draw.number(1, 3)
    if depthwise:
        filters = channels * multiplier
    scales = draw.filter_scales(type_, filters)
    x = net.input(type_, [1, height, width, channels], Quantization(scale, draw.zero_point(type_)))
    depth = 1 if depthwise else channels // groups
    shape = (1, kernel_h, kernel_w, filters) if depthwise else (filters, kernel_h, kernel_w, depth)
    weights = filter_codes(net, draw, type_, shape, scales, 3 if depthwise else 0)
    biases = bias_or_none(net, draw, type_, filters, scales * np.float32(scale))
    spread = scale * float(scales.mean()) * np.sqrt(kernel_h * kernel_w * depth) * 70 * 70 / 60
    if type_ == "i16":
        spread *= 256 / 200
    result_scale = spread * draw.real(0.5, 2)
    result_shape = [
        1,
        convolved_size(height, kernel_h, stride_h, padding, dilation),
        convolved_size(width, kernel_w, stride_w, padding, dilation),
        filters,
    ]
    y = net.output(type_, result_shape, Quantization(result_scale, draw.zero_point(type_)))
    add_convolution(
        net,
        [x, weights, biases],
        y,
        multiplier if depthwise else None,
        padding=padding,
        stride_w=stride_w,
        stride_h=stride_h,
        dilation_w_factor=dilation,
        dilation_h_factor=dilation,
        fused_activation_function=draw.activation(),
    )


def padded_convolution(net, draw):
    """A convolution, depthwise or not, of what PAD made larger."""
    quantization = draw.quantization("i8")
    height = draw.number(5, 12)
    width = draw.number(5, 12)
    channels = draw.number(1, 6)
    top = draw.number(0, 3)
    bottom = draw.number(0, 3)
    left = draw.number(0, 3)
    right = draw.number(0, 3)
    kernel = 3
    stride = draw.number(1, 3)
    depthwise = draw.flag()
    filters = channels if depthwise else 7
    x = net.input("i8", [1, height, width, channels], quantization)
    height += top + bottom
    width += left + right
    padded = net.tensor("i8", [1, height, width, channels], quantization)
    amounts = net.constant("i32", [[0, 0], [top, bottom], [left, right], [0, 0]])
    net.operator("PAD", [x, amounts], [padded])
    shape = (1, kernel, kernel, filters) if depthwise else (filters, kernel, kernel, channels)
    weights = net.constant("i8", draw.numbers(-127, 128, shape), Quantization(0.01))
    bias_scale = np.float32(0.01) * np.float32(quantization.scale)
    biases = net.constant("i32", draw.numbers(-500, 500, filters), Quantization(bias_scale))
    result_height = convolved_size(height, kernel, stride, VALID_PADDING)
    result_width = convolved_size(width, kernel, stride, VALID_PADDING)
    result_quantization = Quantization(quantization.scale * 5, draw.zero_point("i8"))
    y = net.output("i8", [1, result_height, result_width, filters], result_quantization)
    fields = {"padding": VALID_PADDING, "stride_w": stride, "stride_h": stride}
    add_convolution(net, [padded, weights, biases], y, 1 if depthwise else None, **fields)


def fully_connected(net, draw, type_=None):
    type_ = type_ or draw.type()
    batch = draw.number(1, 4)
    channels = draw.number(1, 70)
    filters = draw.number(1, 40)
    scale = draw.scale()
    scales = draw.filter_scales(type_, filters)
    x = net.input(type_, [batch, channels], Quantization(scale, draw.zero_point(type_)))
    weights = filter_codes(net, draw, type_, (filters, channels), scales)
    biases = bias_or_none(net, draw, type_, filters, scales * np.float32(scale))
    result_scale = scale * float(scales.mean()) * np.sqrt(channels) * 80
    y = net.output(type_, [batch, filters], Quantization(result_scale, draw.zero_point(type_)))
    activation = draw.activation()
    net.operator("FULLY_CONNECTED", [x, weights, biases], [y], "FullyConnected", fused_activation_function=activation)


def transposed_convolution(net, draw):
    type_ = draw.type()
    height = draw.number(1, 6)
    width = draw.number(1, 6)
    channels = draw.number(1, 6)
    filters = draw.number(1, 9)
    kernel_h = draw.number(1, 5)
    kernel_w = draw.number(1, 5)
    stride = draw.number(1, 4)
    padding = draw.number(0, 2)
    scale = draw.scale()
    scales = draw.weight_scales(filters)
    if padding == SAME_PADDING:
        shape = [1, height * stride, width * stride, filters]
    else:
        shape = [1, (height - 1) * stride + kernel_h, (width - 1) * stride + kernel_w, filters]
    x = net.input(type_, [1, height, width, channels], Quantization(scale, draw.zero_point(type_)))
    values = draw.numbers(-127, 128, (filters, kernel_h, kernel_w, channels))
    weights = net.constant("i8", values, Quantization(scales))
    result_shape = net.constant("i32", shape)
    biases = bias(net, draw, type_, filters, scales * np.float32(scale))
    result_scale = scale * float(scales.mean()) * np.sqrt(channels * kernel_h * kernel_w) * 80
    y = net.output(type_, shape, Quantization(result_scale, draw.zero_point(type_)))
    fields = {"padding": padding, "stride_w": stride, "stride_h": stride}
    net.operator("TRANSPOSE_CONV", [result_shape, weights, x, biases], [y], "TransposeConv", **fields)


def pool(net, draw, operator, type_):
    height = draw.number(2, 14)
    width = draw.number(2, 14)
    channels = draw.number(1, 18)
    kernel_h = draw.number(1, min(height, 5) + 1)
    kernel_w = draw.number(1, min(width, 5) + 1)
    stride_h = draw.number(1, 4)
    stride_w = draw.number(1, 4)
    padding = draw.number(0, 2)
    quantization = draw.quantization(type_)
    result_height = convolved_size(height, kernel_h, stride_h, padding)
    result_width = convolved_size(width, kernel_w, stride_w, padding)
    x = net.input(type_, [1, height, width, channels], quantization)
    y = net.output(type_, [1, result_height, result_width, channels], quantization)
    net.operator(
        operator,
        [x],
        [y],
        "Pool2D",
        padding=padding,
        stride_w=stride_w,
        stride_h=stride_h,
        filter_width=kernel_w,
        filter_height=kernel_h,
        fused_activation_function=draw.activation(),
    )


def resize(net, draw, operator, options, type_="i8"):
    quantization = draw.quantization(type_)
    height = draw.number(1, 7)
    width = draw.number(1, 7)
    channels = draw.number(1, 9)
    whole = draw.number(0, 4) != 0
    factor = draw.one_of([1, 2, 4])
    result_height = height * factor if whole else draw.number(1, 12)
    result_width = width * factor if whole else draw.number(1, 12)
    mode = draw.number(0, 3)
    corners = mode == 1
    if corners and whole:
        result_height = (height - 1) * factor + 1
        result_width = (width - 1) * factor + 1
    x = net.input(type_, [1, height, width, channels], quantization)
    y = net.output(type_, [1, result_height, result_width, channels], quantization)
    sizes = net.constant("i32", [result_height, result_width])
    net.operator(operator, [x, sizes], [y], options, align_corners=corners, half_pixel_centers=mode == 2)
