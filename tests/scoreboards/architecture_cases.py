"""Tiny configurations of many architectures: what tests/scoreboards/architectures.py exports, runs and compares.

Each case names a task's class, the settings that make it small, and how its inputs are drawn. Text cases run at the
traced shape, at another shape, and with padding on the left or right; the others at the traced shape.
"""

import dataclasses

VOCABULARY = 128
TEXT_ENCODER = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "max_position_embeddings": 64, "pad_token_id": 0,
}
DECODER = {**TEXT_ENCODER, "num_key_value_heads": 2, "bos_token_id": 1, "eos_token_id": 2}
MHA = {**DECODER, "num_key_value_heads": 4}
GPT = {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "bos_token_id": 1,
       "eos_token_id": 2}
SEQ2SEQ = {
    "vocab_size": VOCABULARY, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
}
VISION = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
          "image_size": 32, "patch_size": 8, "num_labels": 3}
SPEECH = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 32,
    "conv_dim": (16, 16, 16), "conv_kernel": (10, 3, 3), "conv_stride": (5, 2, 2), "num_feat_extract_layers": 3,
    "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4, "feat_extract_norm": "group",
}
CLIP_TEXT = {**TEXT_ENCODER, "projection_dim": 16, "bos_token_id": 1, "eos_token_id": 2}
CLIP_VISION = {**VISION, "projection_dim": 16}


@dataclasses.dataclass
class Case:
    """`prefix` is Transformers' class prefix, `head` the rest of the model class; `atol` bounds every output."""

    name: str
    group: str
    prefix: str
    head: str
    settings: dict
    inputs: str = "text"
    config: str = ""
    atol: float = 1e-4
    dynamic: bool = True
    extra: dict = dataclasses.field(default_factory=dict)


def text(name, prefix, head, settings=None, **more):
    return Case(name, "text encoders", prefix, head, {**TEXT_ENCODER, **(settings or {})}, **more)


def decoder(name, prefix, settings=None, base=None, head="ForCausalLM", **more):
    return Case(name, "decoders", prefix, head, {**(DECODER if base is None else base), **(settings or {})}, **more)


def seq2seq(name, prefix, settings=None, base=None, head="ForConditionalGeneration", **more):
    return Case(name, "encoder-decoders", prefix, head, {**(SEQ2SEQ if base is None else base), **(settings or {})},
                **{"inputs": "seq2seq", **more})


def vision(name, prefix, settings=None, base=None, head="ForImageClassification", **more):
    return Case(name, "vision", prefix, head, {**(VISION if base is None else base), **(settings or {})},
                **{"inputs": "image", "dynamic": False, **more})


def speech(name, prefix, settings=None, base=None, head="ForCTC", **more):
    return Case(name, "speech", prefix, head, {**(SPEECH if base is None else base), **(settings or {})},
                **{"inputs": "wave", "dynamic": False, **more})


MOE = {"moe_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2}
SSM = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8, "pad_token_id": 0,
       "bos_token_id": 1, "eos_token_id": 2}
RESNET = {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1], "layer_type": "basic"}
BACKBONE = {"backbone_config": {"model_type": "resnet", "embedding_size": 16, "hidden_sizes": [16, 32, 32, 32],
                                "depths": [1, 1, 1, 1], "layer_type": "basic",
                                "out_features": ["stage4"]}, "use_timm_backbone": False, "backbone": None}

CASES = [
    text("bert", "Bert", "ForSequenceClassification"),
    text("bert-mlm", "Bert", "ForMaskedLM"),
    text("roberta", "Roberta", "ForMaskedLM"),
    text("xlm-roberta", "XLMRoberta", "ForSequenceClassification"),
    text("camembert", "Camembert", "ForTokenClassification"),
    text("distilbert", "DistilBert", "ForQuestionAnswering", {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48}),
    text("albert", "Albert", "ForMaskedLM", {"embedding_size": 16}),
    text("electra", "Electra", "ForTokenClassification", {"embedding_size": 16}),
    text("mpnet", "MPNet", "Model"),
    text("deberta", "Deberta", "Model", {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "max_relative_positions": 16}),
    text("deberta-v2", "DebertaV2", "ForSequenceClassification",
         {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 8, "share_att_key": True,
          "norm_rel_ebd": "layer_norm", "max_relative_positions": 16}),
    text("modernbert", "ModernBert", "ForMaskedLM",
         {"local_attention": 8, "global_attn_every_n_layers": 2, "bos_token_id": 1, "eos_token_id": 2,
          "cls_token_id": 1, "sep_token_id": 2, "reference_compile": False}),
    text("mobilebert", "MobileBert", "Model",
         {"embedding_size": 16, "intra_bottleneck_size": 16, "num_feedforward_networks": 1}),
    text("squeezebert", "SqueezeBert", "Model", {"embedding_size": 32}),
    text("convbert", "ConvBert", "Model", {"embedding_size": 32}),
    text("roformer", "RoFormer", "ForMaskedLM"),
    text("ernie", "Ernie", "Model"),
    text("nystromformer", "Nystromformer", "Model", {"num_landmarks": 8, "segment_means_seq_len": 8}),
    text("layoutlm", "LayoutLM", "Model", {"max_2d_position_embeddings": 32}, inputs="layout"),

    decoder("llama", "Llama"),
    decoder("mistral", "Mistral", {"sliding_window": 6}),
    decoder("ministral", "Ministral", {"sliding_window": 6, "head_dim": 8}),
    decoder("qwen2", "Qwen2"),
    decoder("qwen3", "Qwen3", {"head_dim": 8}),
    decoder("gemma", "Gemma", {"head_dim": 8}),
    decoder("gemma2", "Gemma2", {"head_dim": 8, "sliding_window": 6, "query_pre_attn_scalar": 8}),
    decoder("gemma3", "Gemma3", {"head_dim": 8, "sliding_window": 6, "query_pre_attn_scalar": 8},
            config="Gemma3TextConfig"),
    decoder("phi", "Phi", {"partial_rotary_factor": 0.5}, MHA),
    decoder("phi3", "Phi3"),
    decoder("gpt2", "GPT2", base=GPT, head="LMHeadModel"),
    decoder("gpt-bigcode", "GPTBigCode", base=GPT),
    decoder("gpt-neo", "GPTNeo", {"hidden_size": 32, "num_layers": 2, "num_heads": 4, "window_size": 6,
                                  "attention_types": [[["global", "local"], 1]], "intermediate_size": 48}),
    decoder("gpt-neox", "GPTNeoX", {"partial_rotary_factor": 0.5}, MHA),
    decoder("gptj", "GPTJ", {"rotary_dim": 4}, GPT),
    decoder("codegen", "CodeGen", {"rotary_dim": 4}, GPT),
    decoder("opt", "OPT", {"ffn_dim": 48, "word_embed_proj_dim": 32}, MHA),
    decoder("bloom", "Bloom", {"n_layer": 2, "n_head": 4}),
    decoder("falcon", "Falcon", {"new_decoder_architecture": True, "num_kv_heads": 2}),
    decoder("mpt", "Mpt", {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64, "expansion_ratio": 2}),
    decoder("starcoder2", "Starcoder2"),
    decoder("cohere", "Cohere"),
    decoder("olmo2", "Olmo2"),
    decoder("stablelm", "StableLm", {"partial_rotary_factor": 0.5}),
    decoder("granite", "Granite"),
    decoder("smollm3", "SmolLM3", {"no_rope_layers": [1, 0]}),
    decoder("glm4", "Glm4", {"head_dim": 8, "partial_rotary_factor": 0.5}),
    decoder("nemotron", "Nemotron", {"head_dim": 8}),
    decoder("exaone4", "Exaone4", {"sliding_window": 6}),
    decoder("mixtral", "Mixtral", {"num_local_experts": 4}),
    decoder("qwen2-moe", "Qwen2Moe", {**MOE, "shared_expert_intermediate_size": 16}),
    decoder("qwen3-moe", "Qwen3Moe", {**MOE, "head_dim": 8}),
    decoder("gpt-oss", "GptOss", {"num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 8, "sliding_window": 6}),
    decoder("deepseek-v3", "DeepseekV3",
            {"q_lora_rank": 16, "kv_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 4, "v_head_dim": 8,
             "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1,
             "moe_intermediate_size": 16, "first_k_dense_replace": 1}, MHA),
    decoder("mamba", "Mamba", {"time_step_rank": 4}, SSM, inputs="ids"),
    decoder("mamba2", "Mamba2", {"num_heads": 8, "head_dim": 8, "n_groups": 2, "expand": 2, "chunk_size": 8}, SSM,
            inputs="ids"),
    decoder("lfm2", "Lfm2", {"layer_types": ["conv", "full_attention"]}),

    seq2seq("t5", "T5", {"vocab_size": VOCABULARY, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2,
                         "num_heads": 4, "pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 0}, {}),
    seq2seq("mt5", "MT5", {"vocab_size": VOCABULARY, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2,
                           "num_heads": 4, "pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 0}, {}),
    seq2seq("bart", "Bart"),
    seq2seq("mbart", "MBart"),
    seq2seq("marian", "Marian", head="MTModel"),
    seq2seq("pegasus", "Pegasus"),
    seq2seq("m2m-100", "M2M100"),
    seq2seq("blenderbot", "Blenderbot"),
    seq2seq("whisper", "Whisper", {"max_source_positions": 16, "max_target_positions": 32, "num_mel_bins": 8},
            inputs="speech2seq", dynamic=False),
    seq2seq("speech-to-text", "Speech2Text",
            {"max_source_positions": 64, "max_target_positions": 32, "input_feat_per_channel": 8, "conv_channels": 16},
            inputs="speech2seq", dynamic=False),

    vision("vit", "ViT"),
    vision("deit", "DeiT"),
    vision("beit", "Beit", {"use_relative_position_bias": True}),
    vision("swin", "Swin", {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4],
                            "window_size": 4, "num_labels": 3}, {}),
    vision("swinv2", "Swinv2", {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [1, 1],
                                "num_heads": [2, 4], "window_size": 4, "num_labels": 3}, {}),
    vision("convnext", "ConvNext", {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2, "num_labels": 3}, {}),
    vision("convnextv2", "ConvNextV2", {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2, "num_labels": 3},
           {}),
    vision("resnet", "ResNet", RESNET, {"num_labels": 3}),
    vision("mobilenet-v2", "MobileNetV2", {"depth_multiplier": 0.25, "min_depth": 8, "num_labels": 3}, {}),
    vision("efficientnet", "EfficientNet",
           {"width_coefficient": 0.25, "depth_coefficient": 0.25, "hidden_dim": 32, "image_size": 32, "num_labels": 3},
           {}),
    vision("mobilevit", "MobileViT", {"hidden_sizes": [16, 16, 16], "neck_hidden_sizes": [8, 8, 16, 16, 16, 16, 32],
                                      "intermediate_size": 48}),
    vision("segformer", "Segformer", {"hidden_sizes": [16, 16, 32, 32], "depths": [1, 1, 1, 1],
                                      "num_attention_heads": [1, 2, 2, 4], "decoder_hidden_size": 16, "num_labels": 3},
           {}, head="ForSemanticSegmentation", inputs="image64"),
    vision("dinov2", "Dinov2"),
    vision("dinov3-vit", "DINOv3ViT", head="Model"),
    vision("pvt", "Pvt", {"hidden_sizes": [16, 16, 32, 32], "depths": [1, 1, 1, 1],
                          "num_attention_heads": [1, 2, 2, 4], "image_size": 64, "num_labels": 3}, {},
           inputs="image64"),
    vision("poolformer", "PoolFormer", {"hidden_sizes": [16, 16, 32, 32], "depths": [1, 1, 1, 1], "num_labels": 3}, {},
           inputs="image64"),
    vision("levit", "Levit", {"image_size": 64, "hidden_sizes": [16, 32, 32], "num_attention_heads": [2, 4, 4],
                              "depths": [1, 1, 1], "key_dim": [8, 8, 8], "num_labels": 3}, {}, inputs="image64"),
    vision("detr", "Detr", {**BACKBONE, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1,
                            "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
                            "decoder_ffn_dim": 48, "num_queries": 5, "num_labels": 3}, {}, head="ForObjectDetection",
           inputs="image64"),
    vision("yolos", "Yolos", {"image_size": [32, 32], "num_detection_tokens": 5}, head="ForObjectDetection"),
    vision("dpt", "DPT", {"is_hybrid": False, "backbone_out_indices": [0, 0, 1, 1], "neck_hidden_sizes": [8, 8, 16, 16],
                          "fusion_hidden_size": 16, "reassemble_factors": [4, 2, 1, 0.5]}, head="ForDepthEstimation"),
    vision("sam", "Sam",
           {"vision_config": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "mlp_dim": 48,
                              "output_channels": 16, "image_size": 64, "patch_size": 16, "window_size": 2,
                              "global_attn_indexes": [1]},
            "prompt_encoder_config": {"hidden_size": 16, "image_size": 64, "patch_size": 16, "mask_input_channels": 4},
            "mask_decoder_config": {"hidden_size": 16, "mlp_dim": 32, "num_hidden_layers": 1, "num_attention_heads": 4,
                                    "iou_head_hidden_dim": 16}}, {}, head="Model", inputs="sam", atol=5e-4),
    vision("clip", "CLIP", {"text_config": CLIP_TEXT, "vision_config": CLIP_VISION, "projection_dim": 16}, {},
           head="Model", inputs="image-text"),
    vision("siglip", "Siglip", {"text_config": CLIP_TEXT, "vision_config": VISION}, {}, head="Model",
           inputs="image-text"),
    vision("clipseg", "CLIPSeg",
           {"text_config": CLIP_TEXT, "vision_config": CLIP_VISION, "projection_dim": 16, "extract_layers": [0, 1],
            "reduce_dim": 16, "decoder_num_attention_heads": 4, "decoder_intermediate_size": 32}, {},
           head="ForImageSegmentation", inputs="image-text"),

    speech("wav2vec2", "Wav2Vec2"),
    speech("hubert", "Hubert"),
    speech("wavlm", "WavLM", {"num_buckets": 16, "max_bucket_distance": 32}),
    speech("unispeech", "UniSpeech"),
    speech("data2vec-audio", "Data2VecAudio", {"num_conv_pos_embeddings": 2, "conv_pos_kernel_size": 3}),
    speech("sew", "SEW", {"squeeze_factor": 2}),
    speech("ast", "AST", {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
                          "patch_size": 8, "frequency_stride": 4, "time_stride": 4, "max_length": 32,
                          "num_mel_bins": 16, "num_labels": 3}, {}, head="ForAudioClassification", inputs="spectrogram"),
]
